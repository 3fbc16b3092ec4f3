import { sleep, type EventId } from '@nightporter/protocol';
import { BootstrapProgress } from './bootstrap-progress.js';
import type { Engine } from './engine.js';
import { settleHistory, settlesInBatches } from './history.js';
import { missingAmong } from './ledger-comparison.js';
import type { GroupProducer, PublishedPage, PublishedReference } from './ledger-ports.js';
import { bring, ledgerFailed } from './ledger-work.js';
import { RecentIds } from './recent-ids.js';
import { claimSweep, type HeldClaim } from './sweep-claim.js';

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
 * nor parked; a history, or whatever else is missing in large numbers, it settles in batches. The watermark follows once a page is through, so it
 * never passes a row that the group does not have. One member walks at a time, by a claim; two would do no harm, since every verdict is decided
 * in a transaction on the position.
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
  const { producer, progress } = walked;
  let afterMs: number | null = null;
  let floorMs: number | null = null;
  while (!engine.stopping.rungForGood) {
    const held = await claimSweep(engine, producer);
    if (held === 'unregistered') engine.tell({ kind: 'unregistered' });
    if (held === 'held') progress.end(engine, 'taken-over');
    if (held === 'held' || held === 'unregistered') return;
    const { claim } = held;
    // Another floor: a topic was added, and nothing of it was compared yet.
    if (afterMs === null || claim.floorMs !== floorMs) afterMs = claim.watermarkMs - ledgerOverlapMs;
    floorMs = claim.floorMs;
    const { topics } = claim;
    if (claim.state === 'live') progress.end(engine, 'live');
    else await progress.begin(engine, producer, { topics, fromMs: Math.max(0, afterMs) });
    const page: PublishedPage = await readPage(engine, walked, { held, afterMs });
    const rows = page.rows.filter(({ eventId }) => !walked.known.has(eventId));
    if (!(await compareRows(engine, walked, { held, rows }))) {
      engine.catchUp.rest(producer);
      return;
    }
    if (page.toMs > claim.watermarkMs) await producer.registry.advance({ toMs: page.toMs, floorMs });
    progress.walked(engine, { rows: rows.length, toMs: page.toMs });
    if (page.isEnd) {
      engine.catchUp.rest(producer);
      return;
    }
    afterMs = page.toMs;
  }
}

function readPage<Session>(
  engine: Engine<Session>,
  { producer }: Walked,
  { held: { claim }, afterMs }: { held: HeldClaim; afterMs: number },
): Promise<PublishedPage> {
  const { options } = engine;
  return producer.ledger.readPublished({
    topics: claim.topics,
    afterMs,
    lagMs: isLeftToBroker(engine, producer)
      ? Math.max(options.ledgerLagMs, options.ledgerBacklogLagMs)
      : options.ledgerLagMs,
    limit: options.ledgerPageMax,
    withArchive: claim.state === 'bootstrapping',
  });
}

/** A backlog waits there, unless some of it was left to the walk. */
function isLeftToBroker<Session>(
  { backlog, catchUp, options, ports }: Engine<Session>,
  producer: GroupProducer,
): boolean {
  const { ledgerEveryMs, ledgerLagMs } = options;
  const nowMs = ports.clock.now();
  const withinMs = 3 * ledgerEveryMs + ledgerLagMs;
  return backlog.isFresh(nowMs, ledgerEveryMs) && !catchUp.wasOn(producer, { nowMs, withinMs });
}

/** True once every row is settled or parked, or gone from the ledger. */
async function compareRows<Session>(
  engine: Engine<Session>,
  { producer, known }: Walked,
  { held: { claim, isOurs }, rows }: { held: HeldClaim; rows: readonly PublishedReference[] },
): Promise<boolean> {
  const missing = await missingAmong(engine, rows);
  if (rows.length > 0) engine.tell({ kind: 'swept', seen: rows.length, missing: missing.length });
  const isLong = claim.state === 'bootstrapping' || missing.length > engine.options.catchUpMax;
  const { kind, unavailable } =
    isLong && settlesInBatches(engine)
      ? await settleHistory(engine, { producer, rows: missing, isOurs })
      : await bring(engine, [producer], missing);
  for (const { place, answer } of unavailable) {
    if (answer.kind !== 'published') engine.tell({ kind: 'version-unavailable', ...place, reason: answer.kind });
  }
  if (kind === 'not-brought') return false;
  for (const { eventId } of rows) known.add(eventId);
  return true;
}

async function release<Session>(engine: Engine<Session>, { registry }: GroupProducer): Promise<void> {
  try {
    await registry.release(engine.owner);
  } catch (error) {
    ledgerFailed(engine, 'release', error);
  }
}
