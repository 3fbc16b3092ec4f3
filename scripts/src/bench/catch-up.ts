import { setTimeout as delay } from 'node:timers/promises';
import { createConsumer } from '@nightporter/consumer';
import {
  connectMongo,
  createGroupRegistry,
  createGroupStores,
  createProducerLedger,
  ensureConsumerCollections,
  ensureOutboxCollections,
  registerGroup,
} from '@nightporter/mongo';
import { systemClock, systemRandom } from '@nightporter/runtime';
import type { ClientSession, MongoClient } from 'mongodb';
import { numberOf, type Benchmark, type BenchmarkContext } from './benchmark.js';
import { Meter } from './meter.js';
import { emitsNothing, insertingHandlers, inTurn, ofMode, rounded, type MeasuredPhase, type Mode } from './modes.js';
import { writePublishedRows } from './published-rows.js';

const [PRODUCER, TOPIC] = ['bench-history', 'bench-history'];
const PHASE_LIMIT_MS = 600_000;
/** A relay marks about so many rows at one moment. */
const ROWS_OF_A_MOMENT = 20;

export interface CatchUpResult extends Readonly<Record<string, unknown>> {
  readonly off: Summary;
  readonly on: Summary;
  /** Of the speed with batches to the speed without. */
  readonly ratio: number;
  readonly phases: readonly Phase[];
}

/** What one new group did with the history. */
interface Phase extends MeasuredPhase {
  readonly events: number;
  readonly conflicts: number;
  /** How often an event was parked before it ran. */
  readonly parked: number;
}

export const catchUp: Benchmark = {
  name: 'catch-up',
  description:
    'Events per second of one new group that starts from the beginning, on the history of a producer: each event parked and run alone against batches. Each event costs one insert of its handler.',
  options: [
    { name: 'events', description: 'events of the history, ten of each aggregate', default: 3_000 },
    { name: 'rounds', description: 'groups without and with batches, in turn', default: 2 },
    { name: 'loops', description: 'batches at once', default: 4 },
    { name: 'batch', description: 'most events in one transaction, with batches', default: 64 },
  ],
  run: measureCatchUp,
};

/** How fast one worker catches up without and with batches, in turn, over the same history. */
export async function measureCatchUp(context: BenchmarkContext): Promise<CatchUpResult> {
  const client = await connectMongo({ uri: context.stack.mongodb.uri });
  context.atEnd(() => client.close());
  await ensureOutboxCollections(client, PRODUCER);
  const beganMs = Date.now() - numberOf(context, 'events') - 60_000;
  const rows = { database: PRODUCER, topic: TOPIC, count: numberOf(context, 'events') };
  await writePublishedRows(client, {
    ...rows,
    publishedAt: (number) => new Date(beganMs + Math.floor(number / ROWS_OF_A_MOMENT)),
  });
  // The server and this process are slow at first, which must not be charged to whichever mode comes first.
  await phase(context, client, { mode: 'on', name: 'warm-up' });
  const phases = await inTurn(context, (next) => phase(context, client, next));
  const off = summary(phases, 'off');
  const on = summary(phases, 'on');
  return { off, on, ratio: rounded(on.perSecond / off.perSecond), phases };
}

/** Lets a new group, in a database of its own, catch up with the history. Nothing comes from a broker. */
async function phase(
  context: BenchmarkContext,
  client: MongoClient,
  { mode, name }: { mode: Mode; name: string },
): Promise<Phase> {
  const events = numberOf(context, 'events');
  const [group, database] = [`bench-${name}`, `bench-${name}`];
  await ensureConsumerCollections(client, database);
  const effects = await client.db(database).createCollection('effects');
  await registerGroup(client, PRODUCER, { group, topics: [TOPIC] });
  const ledger = createProducerLedger({ client, database: PRODUCER });
  const registry = createGroupRegistry({ client, database: PRODUCER, group });
  const stores = createGroupStores({ client, database, group });
  const meter = new Meter();
  const consumer = createConsumer<ClientSession>(
    {
      subscribers: [],
      store: meter.store(stores.store),
      parked: stores.parked,
      started: stores.started,
      ledgerSweep: { gaps: stores.gaps, producers: [{ ledger, registry }] },
      emitter: emitsNothing,
      clock: systemClock,
      random: systemRandom,
      observe: meter.observe,
    },
    {
      group,
      receiveLoops: numberOf(context, 'loops'),
      catchUpMax: mode === 'on' ? numberOf(context, 'batch') : 1,
      handlers: insertingHandlers(effects),
    },
  );
  meter.start();
  const running = consumer.run();
  const deadlineMs = performance.now() + PHASE_LIMIT_MS;
  while (meter.settled < events && performance.now() < deadlineMs) await delay(20);
  await consumer.stop();
  await running;
  const { applied, conflicts, parked } = consumer.snapshot();
  if (applied !== events) throw new Error(`${name}: ${applied} of ${events} events were applied.`);
  const { ms, transactions } = meter;
  context.progress(`${name}: ${Math.round((events * 1_000) / ms)} events per second, ${transactions} transactions`);
  return { mode, events, ms, transactions, conflicts, parked: parked.retry + parked.behind + parked.gap };
}

interface Summary {
  readonly perSecond: number;
  readonly perTransaction: number;
}

function summary(phases: readonly Phase[], mode: Mode): Summary {
  const { perSecond, perTransaction } = ofMode(phases, mode, ({ events }) => events);
  return { perSecond, perTransaction };
}
