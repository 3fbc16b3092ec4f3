import { createCatalogue, defineEvent } from '@nightporter/contracts';
import { createDeadLetters, type DeadLetter, type DeadLetters } from '@nightporter/ledger';
import {
  CONSUMER_COLLECTIONS,
  connectMongo,
  type InboxDocument,
  type GroupActionDocument,
  type ParkedDocument,
  type PositionDocument,
} from '@nightporter/mongo';
import type { EventId } from '@nightporter/protocol';
import { createPublisher, type RocketmqPublisher } from '@nightporter/rocketmq';
import { createLogger, loadConfig, type RunningService } from '@nightporter/runtime';
import { defineConsumer } from '@nightporter/worker';
import type { Collection, MongoClient } from 'mongodb';
import { z } from 'zod';
import { createGroup, createTopic, sharedStack, uniqueName } from '../support/stack.js';
import { publishRequest, untilGiven } from './rocketmq-samples.js';

/** What the handler leaves behind, once per event. */
export interface EffectDocument {
  readonly _id: EventId;
  readonly aggregateId: string;
  readonly version: number;
  readonly value: number;
  readonly attempt: number;
}

/** A running worker on a topic of its own, whose handler fails as long as its data says so. */
export interface LedgerFixture {
  readonly client: MongoClient;
  readonly database: string;
  readonly group: string;
  readonly deadLetters: DeadLetters;
  readonly effects: Collection<EffectDocument>;
  readonly inbox: Collection<InboxDocument>;
  readonly parked: Collection<ParkedDocument>;
  readonly positions: Collection<PositionDocument>;
  readonly actions: Collection<GroupActionDocument>;
  /** Aggregates for whose events the handler works again, whatever their data says. */
  readonly mended: Set<string>;
  /** Sends versions `from` to `to` of an aggregate, version 2 with data that its handler refuses. Returns their ids. */
  publish(aggregateId: string, from: number, to: number): Promise<readonly EventId[]>;
  send(sample: {
    aggregateId: string;
    version: number;
    payload: { value: number; poison?: boolean };
  }): Promise<EventId>;
  /** Waits until the event is a dead letter, and everything behind it up to `waiting` events is parked. */
  dead(eventId: EventId, waiting: number): Promise<DeadLetter>;
  /** Waits until the group has settled the versions of the aggregate. */
  settled(aggregateId: string, count: number): Promise<readonly InboxDocument[]>;
  /** Values in the order of versions. */
  valuesOf(aggregateId: string): Promise<readonly number[]>;
  close(): Promise<void>;
}

/** Attempts before an event is dead. */
export const ATTEMPTS = 2;
const LIMIT_MS = 20_000;

export async function ledgerFixture(): Promise<LedgerFixture> {
  const { mongodbUri, rocketmqEndpoints } = sharedStack();
  const topic = await createTopic({ name: uniqueName('ledger') });
  const group = await createGroup({ name: uniqueName('ledger'), topics: [topic] });
  const database = uniqueName('ledger');
  const client = await connectMongo({ uri: mongodbUri });
  const publisher = await createPublisher({ endpoints: rocketmqEndpoints, topics: [topic] });
  const mended = new Set<string>();
  const catalogue = catalogueOn(topic);
  const worker = await startWorker({ catalogue, topic, group, database, mended });
  const db = client.db(database);
  const collections = {
    effects: db.collection<EffectDocument>('effects'),
    inbox: db.collection<InboxDocument>(CONSUMER_COLLECTIONS.inbox),
    parked: db.collection<ParkedDocument>(CONSUMER_COLLECTIONS.parked),
    positions: db.collection<PositionDocument>(CONSUMER_COLLECTIONS.positions),
    actions: db.collection<GroupActionDocument>(CONSUMER_COLLECTIONS.actions),
  };
  const read = catalogue.read.bind(catalogue);
  const deadLetters = createDeadLetters({ client, database, group, read });
  const send = sender(publisher, topic);
  return {
    client,
    database,
    group,
    deadLetters,
    ...collections,
    mended,
    send,
    async publish(aggregateId, from, to) {
      const ids: EventId[] = [];
      for (let version = from; version <= to; version += 1) {
        const payload = version === 2 ? { value: version, poison: true } : { value: version };
        ids.push(await send({ aggregateId, version, payload }));
      }
      return ids;
    },
    dead: (eventId, waiting) =>
      untilGiven(
        async () => {
          const shown = await deadLetters.show(eventId);
          return shown?.waitingBehind === waiting ? shown.deadLetter : null;
        },
        { limitMs: LIMIT_MS, what: `dead letter ${eventId} with ${waiting} behind it` },
      ),
    settled: (aggregateId, count) =>
      untilGiven(
        async () => {
          const filter = { group, aggregate: { $regex: `/${aggregateId}$` } } as object;
          const found = await collections.inbox.find(filter).sort({ version: 1 }).toArray();
          return found.length === count ? found : null;
        },
        { limitMs: LIMIT_MS, what: `${count} settled versions of ${aggregateId}` },
      ),
    valuesOf: async (aggregateId) =>
      (await collections.effects.find({ aggregateId }).sort({ version: 1 }).toArray()).map(({ value }) => value),
    async close() {
      await worker.stop();
      await publisher.close();
      await db.dropDatabase();
      await client.close();
    },
  };
}

function catalogueOn(topic: string) {
  const schema = z.strictObject({ value: z.number(), poison: z.boolean().optional() });
  const sample = defineEvent({ type: 'SampleHappened', version: 1, aggregateType: 'sample', topic, schema });
  return createCatalogue([sample]);
}

async function startWorker(setup: {
  catalogue: ReturnType<typeof catalogueOn>;
  topic: string;
  group: string;
  database: string;
  mended: ReadonlySet<string>;
}): Promise<RunningService> {
  const { catalogue, topic, group, database, mended } = setup;
  const worker = defineConsumer({
    name: 'ledger-tests',
    description: 'Fails where it is told to.',
    port: 0,
    database,
    group,
    source: 'ledger-tests',
    catalogue,
    subscriptions: [{ producer: database, topic, topicSetting: 'TOPIC' }],
    tuning: { retryScheduleMs: [50] },
    prepare: async ({ database: own }) => {
      await own.createCollection('effects').catch(() => undefined);
    },
    handlers: ({ database: own }) => ({
      SampleHappened: async ({ event, session, attempt }) => {
        const { value, poison } = event.data;
        const effect = { aggregateId: event.aggregateId, version: event.aggregateVersion, value, attempt };
        await own.collection<EffectDocument>('effects').insertOne({ _id: event.eventId, ...effect }, { session });
        if (poison === true && !mended.has(event.aggregateId)) throw new Error(`poison in ${event.aggregateId}`);
      },
    }),
  });
  const { mongodbUri, rocketmqEndpoints } = sharedStack();
  const config = loadConfig(worker.config, {
    MONGODB_URI: mongodbUri,
    ROCKETMQ_ENDPOINTS: rocketmqEndpoints,
    ATTEMPTS_MAX: String(ATTEMPTS),
    RECEIVE_LOOPS: '2',
  });
  const logger = createLogger({ name: 'ledger-tests', level: 'silent' });
  return worker.start({ config, logger, signal: new AbortController().signal });
}

function sender(publisher: RocketmqPublisher, topic: string): LedgerFixture['send'] {
  return async ({ aggregateId, version, payload }) => {
    const request = publishRequest({ topic, aggregateId, version, payload: { ...payload } });
    await publisher.publish(request);
    return request.row.eventId;
  };
}
