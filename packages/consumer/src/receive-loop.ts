import { Wakeup, sleep } from '@nightporter/protocol';
import { settleBatch } from './batch.js';
import { backoffMs } from './circuit.js';
import { confirmedRepeats, durablePrefix } from './duplicates.js';
import type { Engine } from './engine.js';
import { workOf, type Work } from './incoming.js';
import { beginBatch } from './started.js';
import type { Delivery, Subscriber } from './ports.js';

/** A receive that comes back empty sooner than this did not wait; the loop then waits instead, so as not to spin. */
const EMPTY_RECEIVE_MS = 50;

const NO_REPEATS: ReadonlySet<Work> = new Set();

/** Where a loop receives from, and its number within the process. */
export interface ReceivePlace {
  readonly subscriber: Subscriber;
  readonly loop: number;
}

/** Receives, settles, acknowledges, one batch at a time, until the consumer stops. Nothing is received while the database is away. */
export async function receiveLoop<Session>(engine: Engine<Session>, place: ReceivePlace): Promise<void> {
  const { subscriber } = place;
  const { circuit, options, ports, stopping } = engine;
  let failures = 0;
  while (await circuit.whenClosed(stopping)) {
    const startedAt = ports.clock.now();
    let deliveries: readonly Delivery[];
    try {
      deliveries = await subscriber.receive({ max: options.receiveMax, invisibleMs: options.invisibleMs });
      failures = 0;
    } catch (error) {
      failures += 1;
      engine.tell({ kind: 'broker-unavailable', operation: 'receive', error });
      await pauseAfter(engine, failures, stopping);
      continue;
    }
    if (deliveries.length > 0) await takeBatch(engine, place, deliveries);
    else if (ports.clock.now() - startedAt < EMPTY_RECEIVE_MS) await sleep(ports.clock, EMPTY_RECEIVE_MS, stopping);
  }
}

/** A batch that arrives while the consumer stops is settled like any other: left alone it would lock its queue until it is visible again. */
async function takeBatch<Session>(
  engine: Engine<Session>,
  { subscriber, loop }: ReceivePlace,
  deliveries: readonly Delivery[],
): Promise<void> {
  const { counters, options } = engine;
  const redelivered = deliveries.filter((delivery) => delivery.deliveryAttempt > 1).length;
  if (deliveries.length >= options.receiveMax) engine.backlog.full(engine.ports.clock.now());
  engine.tell({ kind: 'received', count: deliveries.length, redelivered });
  const reader = { handlers: engine.handlers, read: options.read };
  const works = deliveries.map((delivery) => workOf(delivery, reader, options.deliveriesTrusted));
  const hold = holdInvisible(engine, subscriber, deliveries);
  counters.inHand('batchesInHand', 1);
  let durable: number;
  try {
    const repeats = engine.ports.duplicates === undefined ? NO_REPEATS : await confirmedRepeats(engine, works);
    const rest = works.filter((work) => !repeats.has(work));
    const begun = await beginBatch(engine, loop, rest);
    const settled = begun === null ? 0 : await settleBatch(engine, begun, options);
    durable = durablePrefix(works, { repeats, settled });
  } finally {
    counters.inHand('batchesInHand', -1);
    await hold.release();
  }
  await acknowledge(engine, subscriber, hold.deliveries().slice(0, durable));
}

/**
 * Only after the commit. What is not acknowledged locks its whole queue until its invisibility ends, so a request that fails
 * is repeated until then; if none succeeds, the messages come again and are found to be duplicates.
 */
async function acknowledge<Session>(
  engine: Engine<Session>,
  subscriber: Subscriber,
  deliveries: readonly Delivery[],
): Promise<void> {
  if (deliveries.length === 0) return;
  const { options, ports, rollBack } = engine;
  const visibleAt = ports.clock.now() + options.invisibleMs;
  for (let failures = 1; ; failures += 1) {
    try {
      await subscriber.acknowledge(deliveries);
      engine.tell({ kind: 'acknowledged', count: deliveries.length });
      return;
    } catch (error) {
      engine.tell({ kind: 'broker-unavailable', operation: 'acknowledge', error });
    }
    await pauseAfter(engine, failures, rollBack);
    if (rollBack.rungForGood || ports.clock.now() >= visibleAt) return;
  }
}

/** Waits after a broker failure, longer with each in a row, or until `ending` rings. */
async function pauseAfter<Session>(engine: Engine<Session>, failures: number, ending: Wakeup): Promise<void> {
  const { options, ports } = engine;
  const limits = { firstMs: options.pauseFirstMs, maxMs: options.pauseMaxMs };
  await sleep(ports.clock, backoffMs(limits, failures, ports.random), ending);
}

/**
 * Renews the invisibility of a batch at half of its time, until it is released; a request that fails is repeated while the
 * invisibility lasts. Only its latest receipts count.
 */
function holdInvisible<Session>(
  engine: Engine<Session>,
  subscriber: Subscriber,
  deliveries: readonly Delivery[],
): { release(): Promise<void>; deliveries(): readonly Delivery[] } {
  const { options, ports } = engine;
  const released = new Wakeup();
  let held = deliveries;
  const renewing = (async () => {
    for (let failures = 0; ;) {
      if (failures === 0) await sleep(ports.clock, options.invisibleMs / 2, released);
      else await pauseAfter(engine, failures, released);
      if (released.rungForGood) return;
      try {
        held = await subscriber.extend(held, options.invisibleMs);
        failures = 0;
      } catch (error) {
        failures += 1;
        engine.tell({ kind: 'broker-unavailable', operation: 'extend', error });
      }
    }
  })();
  return {
    async release() {
      released.ringForGood();
      await renewing;
    },
    deliveries: () => held,
  };
}
