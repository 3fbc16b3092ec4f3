import { isNightporterError, aggregateVersion, type AggregateKey } from '@nightporter/protocol';
import type { GroupDocument } from '@nightporter/mongo';
import { invalid } from '../requests.js';
import type { ReplayResult } from './contract.js';
import { decideParking, withoutData, type GroupState, type Parked, type Replayed } from './decide.js';
import type { Producer, World } from './world.js';

export type Counts = Pick<ReplayResult, 'parked' | 'skipped' | 'known' | 'conflicts'>;

/** One aggregate of a replay. */
export interface Chain {
  readonly aggregate: AggregateKey;
  readonly producer: Producer;
  /** Selected versions, rising. */
  readonly versions: readonly number[];
  /**
   * `whole`: of a new group; whatever was published up to `floorMs` from the first selected version on is parked. `missing`: only
   * the selected ones, as far as the group lacks them; `standing` is the group's entry with the producer.
   */
  readonly scope:
    | { readonly kind: 'whole'; readonly floorMs: number }
    | { readonly kind: 'missing'; readonly standing: GroupDocument | null; readonly isDryRun: boolean };
  readonly dueInMs: number;
}

/** Events in one transaction. */
const BATCH = 50;
const ATTEMPTS_MAX = 10;

/** Parks a chain batch by batch; what a batch parked before finds itself known. */
export async function parkChain(world: World, chain: Chain): Promise<Counts> {
  const total = { parked: 0, skipped: 0, known: 0, conflicts: 0 };
  const { scope, versions } = chain;
  const selected = new Set(versions);
  let next = versions[0] ?? 1;
  for (let start = 0; ; start += BATCH) {
    const batch =
      scope.kind === 'missing'
        ? versions.slice(start, start + BATCH)
        : Array.from({ length: BATCH }, (_, index) => next + index);
    if (batch.length === 0) return total;
    next += BATCH;
    const { events, isEnd } = await readBatch(world, chain, { batch, selected });
    const { conflicts, known, parked, skipped } = await parkBatch(world, chain, events);
    total.parked += parked;
    total.skipped += skipped;
    total.known += known;
    total.conflicts += conflicts;
    if (isEnd) return total;
  }
}

type Unjudged = Omit<Replayed, 'isPassed'> & { readonly publishedAtMs: number };

async function readBatch(
  { group }: World,
  { aggregate, producer, scope }: Chain,
  { batch, selected }: { batch: readonly number[]; selected: ReadonlySet<number> },
): Promise<{ readonly events: readonly Unjudged[]; readonly isEnd: boolean }> {
  const places = batch.map((version) => ({ aggregate, version: aggregateVersion(version) }));
  const answers = await producer.ledger.readVersions(places);
  const events: Unjudged[] = [];
  for (const [index, answer] of answers.entries()) {
    const version = batch[index] ?? 0;
    if (answer.kind === 'deleted') {
      if (scope.kind === 'missing') continue;
      throw invalid(
        `Version ${version} of ${aggregate} is no longer in the ledger of ${producer.database}, but the replay into group ${group} begins ` +
          'before it; accepted: a selection whose aggregates the ledger has whole from their first selected event on.',
      );
    }
    // From here on the events come by themselves: they are not published yet, or were published once the group was there.
    const isOver = answer.kind !== 'published' || (scope.kind === 'whole' && answer.publishedAtMs > scope.floorMs);
    if (isOver && scope.kind === 'whole') return { events, isEnd: true };
    if (answer.kind !== 'published') continue;
    const isSelected = selected.has(version);
    const event = isSelected ? answer.event : withoutData(answer.event);
    events.push({ event, isSelected, publishedAtMs: answer.publishedAtMs });
  }
  return { events, isEnd: false };
}

const NOTHING: Parked = { changes: [], parked: 0, skipped: 0, known: 0, conflicts: 0 };

async function parkBatch(world: World, chain: Chain, events: readonly Unjudged[]): Promise<Parked> {
  if (events.length === 0) return NOTHING;
  const { aggregate, dueInMs, scope } = chain;
  const isDryRun = scope.kind === 'missing' && scope.isDryRun;
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await world.store.transact(async (transaction) => {
        const state = await transaction.load(events.map(({ event }) => event));
        const judged = events.map((event) => ({ ...event, isPassed: isPassed(world, chain, { event, state }) }));
        const decided = decideParking(state, aggregate, { events: judged, dueInMs });
        if (!isDryRun && decided.changes.length > 0) await transaction.save(decided.changes);
        return decided;
      });
    } catch (error) {
      if (!isNightporterError(error, 'NP_TRANSACTION_CONFLICT') || attempt === ATTEMPTS_MAX) throw error;
    }
  }
}

/** As the group's workers judge: what a live group has passed so long ago was settled once, so that to run it could repeat its effect. */
function isPassed(
  { inboxRetentionMs }: World,
  { scope }: Chain,
  { event, state }: { event: Unjudged; state: GroupState },
): boolean {
  if (scope.kind === 'whole' || scope.standing?.state !== 'live') return false;
  const { publishedAtMs } = event;
  return publishedAtMs <= scope.standing.watermark.getTime() && state.nowMs - publishedAtMs >= inboxRetentionMs / 2;
}
