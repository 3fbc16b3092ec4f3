import { setTimeout as delay } from 'node:timers/promises';
import { createConsumer, type GroupStore } from '@nightporter/consumer';
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
import { MEASURED_EVENT } from './messages.js';
import { writePublishedRows } from './published-rows.js';

const [PRODUCER, TOPIC] = ['bench-history', 'bench-history'];
const PHASE_LIMIT_MS = 600_000;
/** A relay marks about so many rows at one moment. */
const ROWS_OF_A_MOMENT = 20;

type Mode = 'off' | 'on';

export interface CatchUpResult extends Readonly<Record<string, unknown>> {
  readonly off: Summary;
  readonly on: Summary;
  /** Of the speed with batches to the speed without. */
  readonly ratio: number;
  readonly phases: readonly Phase[];
}

/** What one new group did with the history. */
interface Phase {
  readonly mode: Mode;
  readonly events: number;
  readonly ms: number;
  readonly transactions: number;
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
  const phases: Phase[] = [];
  for (let round = 1; round <= numberOf(context, 'rounds'); round += 1) {
    for (const mode of ['off', 'on'] as const) {
      phases.push(await phase(context, client, { mode, name: `${mode}-${round}` }));
    }
  }
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
  let transactions = 0;
  let settled = 0;
  let lastMs = 0;
  const store: GroupStore<ClientSession> = {
    transact: (work) => {
      transactions += 1;
      return stores.store.transact(work);
    },
  };
  const consumer = createConsumer<ClientSession>(
    {
      subscribers: [],
      store,
      parked: stores.parked,
      started: stores.started,
      ledgerSweep: { gaps: stores.gaps, producers: [{ ledger, registry }] },
      emitter: () => () => Promise.reject(new Error('The benchmark emits nothing.')),
      clock: systemClock,
      random: systemRandom,
      observe: (event) => {
        if (event.kind !== 'settled') return;
        settled += 1;
        lastMs = performance.now();
      },
    },
    {
      group,
      receiveLoops: numberOf(context, 'loops'),
      catchUpMax: mode === 'on' ? numberOf(context, 'batch') : 1,
      handlers: {
        [MEASURED_EVENT]: async ({ event: { aggregateId, aggregateVersion: version, data }, session }) => {
          await effects.insertOne({ aggregateId, version, data }, { session });
        },
      },
    },
  );
  const startedMs = performance.now();
  const running = consumer.run();
  while (settled < events && performance.now() - startedMs < PHASE_LIMIT_MS) await delay(20);
  await consumer.stop();
  await running;
  const { applied, conflicts, parked } = consumer.snapshot();
  if (applied !== events) throw new Error(`${name}: ${applied} of ${events} events were applied.`);
  const ms = Math.round(lastMs - startedMs);
  context.progress(`${name}: ${Math.round((events * 1_000) / ms)} events per second, ${transactions} transactions`);
  return { mode, events, ms, transactions, conflicts, parked: parked.retry + parked.behind + parked.gap };
}

interface Summary {
  readonly perSecond: number;
  readonly perTransaction: number;
}

function summary(phases: readonly Phase[], mode: Mode): Summary {
  const own = phases.filter((one) => one.mode === mode);
  const sum = (of: (one: Phase) => number): number => own.reduce((total, one) => total + of(one), 0);
  return {
    perSecond: Math.round((sum((one) => one.events) * 1_000) / sum((one) => one.ms)),
    perTransaction: rounded(sum((one) => one.events) / sum((one) => one.transactions)),
  };
}

function rounded(value: number): number {
  return Math.round(value * 100) / 100;
}
