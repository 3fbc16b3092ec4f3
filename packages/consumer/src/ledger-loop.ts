import { NO_POSITION, sleep, type EventId } from '@nightporter/protocol';
import type { Engine } from './engine.js';
import type { GroupProducer, PublishedPage, PublishedReference, SweepClaim } from './ledger-ports.js';
import { BootstrapProgress } from './bootstrap-progress.js';
import { bring, ledgerFailed } from './ledger-work.js';
import { corruptionOf } from './incoming.js';
import { versionKey, type EventPlace, type GroupState } from './ports.js';
import { RecentIds } from './recent-ids.js';

/** Rows of the overlap that need not be compared again; more of them only cost a look. */
const KNOWN_MIN = 10_000;

/** A producer, with the rows that were found to be settled or parked in the group: they stay so. */
interface Walked {
  readonly producer: GroupProducer;
  readonly known: RecentIds<EventId>;
  readonly progress: BootstrapProgress;
}

/**
 * The group's ledger sweep: walks the published rows of each producer behind a watermark, page by page, and parks what is neither settled
 * nor parked. The watermark follows once a page is through, so it never passes a row that the group does not have. One member walks
 * at a time, by a claim; two would do no harm, since every verdict is decided in a transaction on the position.
 */
export async function ledgerLoop<Session>(engine: Engine<Session>): Promise<void> {
  const { circuit, options, ports, stopping } = engine;
  const walks = (ports.ledgerSweep?.producers ?? []).map((producer) => ({
    producer,
    known: newMemory(),
    progress: new BootstrapProgress(),
  }));
  if (walks.length === 0) return;
  while (await circuit.whenClosed(stopping)) {
    for (const walked of walks) {
      try {
        await walk(engine, walked);
      } catch (error) {
        ledgerFailed(engine, 'sweep', error);
      }
    }
    // Members that start together shall not always meet.
    await sleep(ports.clock, options.ledgerEveryMs * (0.5 + ports.random() / 2), stopping);
  }
  await Promise.all(walks.map(({ producer }) => release(engine, producer)));
}

function newMemory(): RecentIds<EventId> {
  return new RecentIds(KNOWN_MIN);
}

async function walk<Session>(engine: Engine<Session>, walked: Walked): Promise<void> {
  const { ledgerOverlapMs } = engine.options;
  let afterMs: number | null = null;
  let floorMs: number | null = null;
  while (!engine.stopping.rungForGood) {
    const claim = await walked.producer.registry.claim({
      owner: engine.owner,
      durationMs: engine.options.ledgerClaimMs,
    });
    if (claim.kind === 'unregistered') engine.tell({ kind: 'unregistered' });
    if (claim.kind === 'held') walked.progress.end(engine, 'taken-over');
    if (claim.kind !== 'claimed') return;
    // Another floor: a topic was added, and nothing of it was compared yet.
    if (afterMs === null || claim.floorMs !== floorMs) afterMs = claim.watermarkMs - ledgerOverlapMs;
    floorMs = claim.floorMs;
    const { topics } = claim;
    if (claim.state === 'live') walked.progress.end(engine, 'live');
    else await walked.progress.begin(engine, walked.producer, { topics, fromMs: Math.max(0, afterMs) });
    const page: PublishedPage = await readPage(engine, walked, { claim, afterMs });
    const rows = page.rows.filter(({ eventId }) => !walked.known.has(eventId));
    if (!(await compareRows(engine, walked, rows))) return;
    if (page.toMs > claim.watermarkMs) await walked.producer.registry.advance({ toMs: page.toMs, floorMs });
    walked.progress.walked(engine, { rows: rows.length, toMs: page.toMs });
    if (page.isEnd) return;
    afterMs = page.toMs;
  }
}

function readPage<Session>(
  { backlog, options, ports }: Engine<Session>,
  { producer }: Walked,
  { claim, afterMs }: { claim: SweepClaim & { kind: 'claimed' }; afterMs: number },
): Promise<PublishedPage> {
  const isBehind = backlog.isFresh(ports.clock.now(), options.ledgerEveryMs);
  return producer.ledger.readPublished({
    topics: claim.topics,
    afterMs,
    lagMs: isBehind ? Math.max(options.ledgerLagMs, options.ledgerBacklogLagMs) : options.ledgerLagMs,
    limit: options.ledgerPageMax,
    withArchive: claim.state === 'bootstrapping',
  });
}

/** True once every row is settled or parked, or gone from the ledger. */
async function compareRows<Session>(
  engine: Engine<Session>,
  { producer, known }: Walked,
  rows: readonly PublishedReference[],
): Promise<boolean> {
  const missing = await missingAmong(engine, rows);
  if (rows.length > 0) engine.tell({ kind: 'swept', seen: rows.length, missing: missing.length });
  const { kind, unavailable } = await bring(engine, [producer], missing);
  for (const { place, answer } of unavailable) {
    if (answer.kind !== 'published') engine.tell({ kind: 'version-unavailable', ...place, reason: answer.kind });
  }
  if (kind === 'not-brought') return false;
  for (const { eventId } of rows) known.add(eventId);
  return true;
}

/** Places that are asked for in one transaction. */
const LOOK_MAX = 200;

async function missingAmong<Session>(
  engine: Engine<Session>,
  rows: readonly PublishedReference[],
): Promise<readonly PublishedReference[]> {
  const missing: PublishedReference[] = [];
  for (let start = 0; start < rows.length; start += LOOK_MAX) {
    const part = rows.slice(start, start + LOOK_MAX);
    const state = await engine.ports.store.transact((transaction) => transaction.load(part.map(placeOf)));
    missing.push(...part.filter((row) => isMissing(row, state)));
  }
  return missing;
}

function placeOf({ aggregate, eventId, version }: PublishedReference): EventPlace {
  return { aggregate, envelope: { eventId, aggregateVersion: version } };
}

/** Neither settled nor parked; or its place is taken by another event, or by what is not the event that was written. */
function isMissing({ aggregate, eventId, version }: PublishedReference, state: GroupState): boolean {
  const position = state.positions.get(aggregate) ?? NO_POSITION;
  if (version <= position.startVersion) return false;
  const key = versionKey(aggregate, version);
  const parked = state.parked.get(key)?.event;
  const holder = state.inboxByVersion.get(key)?.eventId ?? parked?.envelope.eventId;
  if (version <= position.version) return holder !== undefined && holder !== eventId;
  if (parked !== undefined && corruptionOf(parked) !== null) return true;
  return holder !== eventId || state.inboxByVersion.has(key);
}

async function release<Session>(engine: Engine<Session>, { registry }: GroupProducer): Promise<void> {
  try {
    await registry.release(engine.owner);
  } catch (error) {
    ledgerFailed(engine, 'release', error);
  }
}
