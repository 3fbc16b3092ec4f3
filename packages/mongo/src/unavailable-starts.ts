import type { ProducerLedger } from '@nightporter/consumer';
import type { OutboxHeadDocument } from '@nightporter/contracts';
import { NightporterError, aggregateVersion, type AggregateKey } from '@nightporter/protocol';
import type { Collection } from 'mongodb';
import { guarded } from './driver-errors.js';
import type { GroupDocument } from './documents.js';
import { atHeads, readHeads, type Head, type StartOf, type StartPosition } from './head-copies.js';

/** A topic of which retention has deleted what was published up to `until`, archive included. */
export interface DeletedTopic {
  readonly topic: string;
  readonly until: Date;
}

/** Where a group starts: at what was there when it came, or, behind what retention has deleted, with what is left. */
export type StartKind = 'at-heads' | 'behind-deleted';

export function startsOf(kind: StartKind, ledger: ProducerLedger): StartOf {
  return kind === 'at-heads' ? atHeads : behindDeleted(ledger);
}

/** Starts right before the first version that the ledger still has; aggregates that are whole need no start. */
export function behindDeleted(ledger: ProducerLedger): StartOf {
  return async (batch) => (await deletedIn(ledger, batch)).filter(({ version }) => version > 0);
}

/** Per aggregate, up to which version it was deleted: retention goes by age, so that what is gone is always a prefix. */
async function deletedIn(ledger: ProducerLedger, batch: readonly Head[]): Promise<readonly StartPosition[]> {
  // The first version that is there lies in [low, high]; at the head + 1 there is nothing left.
  const ranges = batch.map((head) => ({ aggregate: head._id as AggregateKey, low: 1, high: head.version + 1, ask: 1 }));
  for (let open = ranges; open.length > 0; open = open.filter(({ low, high }) => low < high)) {
    const places = open.map(({ aggregate, ask }) => ({ aggregate, version: aggregateVersion(ask) }));
    const answers = await ledger.readVersions(places);
    for (const [index, range] of open.entries()) {
      if (answers[index]?.kind === 'deleted') range.low = range.ask + 1;
      else range.high = range.ask;
      range.ask = Math.floor((range.low + range.high) / 2);
    }
  }
  return ranges.map(({ aggregate, low }) => ({ aggregate, version: low - 1, startReason: 'unavailable' }));
}

/** The refusal of topics that are added to a group which started later than the beginning: no start of its own can be given to them. */
export function additionUnavailable(
  { _id: group, registeredAt }: Pick<GroupDocument, '_id' | 'registeredAt'>,
  deleted: readonly DeletedTopic[],
): NightporterError {
  const topics = deleted.map(({ topic, until }) => `${topic} (published up to ${until.toISOString()})`).join(', ');
  return new NightporterError(
    'NP_GROUP_START_UNAVAILABLE',
    `Group ${group} reads what was published since ${registeredAt.toISOString()}, but retention has deleted events of ${topics} for good, which are to ` +
      'be added. Accepted: the topics that it has, or a new group or generation (GROUP=NAME@2 in a worker), which starts anew.',
  );
}

/** Aggregates that are looked at for the message of a refusal. */
const LOOK_MAX = 1_000;

/** The refusal, with an idea of what is gone. */
export async function startUnavailable({
  heads,
  ledger,
  group,
  deleted,
}: {
  heads: Collection<OutboxHeadDocument>;
  ledger: ProducerLedger;
  group: string;
  deleted: readonly DeletedTopic[];
}): Promise<NightporterError> {
  const looked = await guarded(`reading ${heads.namespace}`, () => readHeads(heads, { behind: '', limit: LOOK_MAX }));
  const lacking = (await deletedIn(ledger, looked)).filter(({ version }) => version > 0);
  const [example] = lacking;
  const found =
    example === undefined
      ? `none of the first ${looked.length} aggregates lacks anything`
      : `of the first ${looked.length} aggregates ${lacking.length} lack versions, such as ${example.aggregate} up to ${example.version}`;
  const topics = deleted.map(({ topic, until }) => `${topic} (published up to ${until.toISOString()})`).join(', ');
  return new NightporterError(
    'NP_GROUP_START_UNAVAILABLE',
    `Group ${group} is to start from the beginning, but retention has deleted events of ${topics} for good; ${found}. Accepted: ` +
      "unavailable: 'accept' (GROUP_UNAVAILABLE=accept in a worker), which starts each aggregate with the first version that is left, or " +
      "from: 'now'.",
  );
}
