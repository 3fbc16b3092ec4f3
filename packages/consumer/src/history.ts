import { settleBatch } from './batch.js';
import type { Engine } from './engine.js';
import { workOfLedger, type EventWork } from './incoming.js';
import type { GroupProducer, PublishedReference } from './ledger-ports.js';
import { askLedgers, type Answered } from './ask-ledgers.js';
import type { Brought } from './ledger-work.js';
import { beginBatch, loopOfLane } from './started.js';

/** Rows that a group lacks, and whether its sweep is still ours. */
export interface Missing {
  readonly producer: GroupProducer;
  /** In the order of their publication. */
  readonly rows: readonly PublishedReference[];
  readonly isOurs: () => Promise<boolean>;
}

/**
 * Whether history may be settled in batches: only where it goes on record first which events are about to run. Without that nobody
 * would know, after a death, that one of them may have caused it, and the same batch would begin again and again.
 */
export function settlesInBatches<Session>({ options, ports }: Engine<Session>): boolean {
  return ports.started !== undefined && options.catchUpMax > 1;
}

/**
 * Settles a long history as what the broker hands out is settled: in batches that are on record before they run, each one transaction
 * while nothing goes wrong. Several batches at once, of different aggregates, as many as there are receive loops for a topic. What another process
 * has on record is parked, and runs from there one by one.
 */
export async function settleHistory<Session>(engine: Engine<Session>, missing: Missing): Promise<Brought> {
  const { options } = engine;
  const unavailable: Answered[] = [];
  // All of them end before anything is thrown: a lane that went on would share its mark with the lane that follows it.
  const ended = await Promise.allSettled(
    lanesOf(missing.rows, options.receiveLoops).map((rows, lane) =>
      settleLane(engine, { ...missing, rows }, { loop: loopOfLane(engine, lane), unavailable }),
    ),
  );
  for (const lane of ended) if (lane.status === 'rejected') throw lane.reason;
  const isThrough = ended.every((lane) => lane.status === 'fulfilled' && lane.value);
  return { kind: isThrough ? 'brought' : 'not-brought', unavailable };
}

/** True once everything that could be had is settled or parked. */
async function settleLane<Session>(
  engine: Engine<Session>,
  { isOurs, producer, rows }: Missing,
  { loop, unavailable }: { loop: number; unavailable: Answered[] },
): Promise<boolean> {
  const { counters, handlers, options, stopping } = engine;
  const commitMax = options.catchUpMax;
  for (let start = 0; start < rows.length; start += commitMax) {
    if (stopping.rungForGood || !(await isOurs())) return false;
    const works: EventWork[] = [];
    for (const answered of await askLedgers([producer], rows.slice(start, start + commitMax))) {
      if (answered.answer.kind !== 'published') unavailable.push(answered);
      else works.push(workOfLedger(answered.answer.event, { handlers, read: options.read }));
    }
    counters.inHand('batchesInHand', 1);
    try {
      const begun = await beginBatch(engine, loop, works);
      const durable = begun === null ? 0 : await settleBatch(engine, begun, { commitMax });
      if (durable < works.length) return false;
    } finally {
      counters.inHand('batchesInHand', -1);
    }
  }
  return true;
}

/** One aggregate is in one lane, so that lanes do not meet at its position; each aggregate's versions rise. */
export function lanesOf(
  rows: readonly PublishedReference[],
  lanesMax: number,
): readonly (readonly PublishedReference[])[] {
  const lanes: PublishedReference[][] = Array.from({ length: lanesMax }, () => []);
  const laneByAggregate = new Map<string, PublishedReference[]>();
  for (const row of inSequence(rows)) {
    const lane = laneByAggregate.get(row.aggregate) ?? shortest(lanes);
    laneByAggregate.set(row.aggregate, lane);
    lane.push(row);
  }
  return lanes.filter((lane) => lane.length > 0);
}

function shortest(lanes: readonly PublishedReference[][]): PublishedReference[] {
  return lanes.reduce((least, lane) => (lane.length < least.length ? lane : least), lanes[0] ?? []);
}

/** Marks of one moment have no order, and one may be later than that of its successor: what came too early would be parked. */
function inSequence(rows: readonly PublishedReference[]): readonly PublishedReference[] {
  const rising = new Map<string, PublishedReference[]>();
  for (const row of [...rows].sort((left, right) => right.version - left.version)) {
    const own = rising.get(row.aggregate) ?? [];
    rising.set(row.aggregate, own);
    own.push(row);
  }
  return rows.map((row) => rising.get(row.aggregate)?.pop() ?? row);
}
