import { sleep } from '@nightporter/protocol';
import type { Engine } from './engine.js';
import { classify } from './failure.js';
import { workOf, workOfLedger, type EventWork, type Work } from './incoming.js';
import type { GroupProducer } from './ledger-ports.js';
import { askLedgers } from './ask-ledgers.js';
import { parkAll } from './ledger-work.js';
import type { Delivery, Subscriber } from './ports.js';

/** What the broker keeps apart is read in small portions: there should be none at all. */
const PORTION_MAX = 32;

/**
 * Reads what the broker has given up for the group: its own dead letters. Their events are settled or parked as the ledger has them, as the
 * sweep would do in the end, and only then acknowledged. That there are any is an alarm: nothing of this project uses the broker's count
 * of deliveries, so somebody's settings, or workers that died over and over, have spent it.
 */
export async function brokerDeadLetterLoop<Session>(engine: Engine<Session>): Promise<void> {
  const { circuit, options, ports, stopping } = engine;
  const { brokerDeadLetters: subscriber, ledgerSweep } = ports;
  if (subscriber === undefined) return;
  while (await circuit.whenClosed(stopping)) {
    let isDone = false;
    try {
      isDone = await readPortion(engine, subscriber, ledgerSweep?.producers ?? []);
    } catch (error) {
      if (classify(error) === 'broken') throw error;
      engine.tell({ kind: 'broker-dead-letters-unavailable', error });
    }
    if (!isDone) await sleep(ports.clock, options.brokerDeadLettersEveryMs, stopping);
  }
}

/** True when there were some, and all of them are done with. */
async function readPortion<Session>(
  engine: Engine<Session>,
  subscriber: Subscriber,
  producers: readonly GroupProducer[],
): Promise<boolean> {
  const { deliveriesTrusted, invisibleMs, read } = engine.options;
  const deliveries = await subscriber.receive({ max: PORTION_MAX, invisibleMs });
  for (const delivery of deliveries) {
    const work = workOf(delivery, { handlers: engine.handlers, read }, deliveriesTrusted);
    if (!(await repair(engine, producers, work))) return false;
    tellOf(engine, delivery, work);
    // One after another: what is left unacknowledged the broker gives up once more, as one more copy.
    await subscriber.acknowledge([delivery]);
  }
  return deliveries.length > 0;
}

/** Nothing runs here, for it may be what ended the workers. False when it is not durable. */
async function repair<Session>(
  engine: Engine<Session>,
  producers: readonly GroupProducer[],
  work: Work,
): Promise<boolean> {
  if (work.kind === 'unreadable') return parkAll(engine, [work]);
  const { aggregate, envelope } = work.event;
  const place = { aggregate, version: envelope.aggregateVersion };
  const [answered] = await askLedgers(producers, [place]);
  const { handlers, options } = engine;
  // What the message says is judged like any other delivery where the ledger does not have it, or not yet.
  const told: EventWork = { ...work, isFromLedger: true };
  if (answered?.answer.kind !== 'published') return parkAll(engine, [told]);
  const written = workOfLedger(answered.answer.event, { handlers, read: options.read });
  // Where another event was written at that place, it comes first: else the message would run in its stead.
  return parkAll(engine, written.event.envelope.eventId === envelope.eventId ? [written] : [written, told]);
}

function tellOf<Session>(engine: Engine<Session>, { messageId, topic }: Delivery, work: Work): void {
  engine.tell({ kind: 'broker-dead-letter', messageId, topic, event: work.kind === 'event' ? work.event : null });
}
