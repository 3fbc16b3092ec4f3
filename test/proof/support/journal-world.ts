import type { OutboxDocument } from '@nightporter/contracts';
import { startMongo, type MongoServer } from '@nightporter/embedded';
import {
  connectMongo,
  createRelayStores,
  ensureOutboxCollections,
  ensureRelayCollections,
  OUTBOX_COLLECTIONS,
} from '@nightporter/mongo';
import { createOutbox, type Outbox } from '@nightporter/outbox';
import { namespace } from '@nightporter/protocol';
import { createRelay, type Publisher, type RelayOptions } from '@nightporter/relay';
import { createPublisher } from '@nightporter/rocketmq';
import { systemClock, systemRandom } from '@nightporter/runtime';
import type { Collection, MongoClient } from 'mongodb';
import { createTopic, sharedStack, uniqueName } from '../../support/stack.js';
import { carelessPublisher, type Carriage, type CarelessPublisher } from './careless-publisher.js';
import { AGGREGATE_TYPE, EVENT_TYPE, journalCatalogue, type Orders } from './programs/journal.js';
import { IS_FULL } from './size.js';

/** One event to commit. */
export interface Emission {
  readonly aggregateId: string;
  readonly orders?: Orders;
}

/** A producer with its outbox, a topic of its own, and the real relay engine, whose publisher may be made careless. */
export interface JournalWorld {
  readonly client: MongoClient;
  readonly mongodbUri: string;
  readonly topic: string;
  /** Database of the producer. */
  readonly producer: string;
  /** Database of the relay. */
  readonly relayDatabase: string;
  readonly outbox: Collection<OutboxDocument>;
  readonly publisher: CarelessPublisher;
  /** Commits the events in one transaction. Returns their ids. */
  commit(emissions: readonly Emission[]): Promise<readonly string[]>;
  /** Told of every program and whatever else has to end before the stack is left alone. */
  atEnd(undo: () => Promise<unknown>): void;
  close(): Promise<void>;
}

export interface WorldOptions {
  readonly queues?: number;
  /** Default: every message once. */
  readonly carriageOf?: (row: Parameters<Publisher['publish']>[0]['row']) => Carriage;
  readonly lateMs?: number;
  /**
   * Has the database, one of its own, give up transactions after so long instead of 60 s: until then, what a killed worker had in hand is held.
   * Far longer than a transaction takes on a busy machine, since it gives up those of the living too, which costs an attempt.
   */
  readonly transactionLifetimeSeconds?: number;
  readonly relay?: Partial<RelayOptions>;
}

export async function openJournalWorld({
  queues = 8,
  carriageOf = () => 'once',
  lateMs = 1_000,
  transactionLifetimeSeconds,
  relay = {},
}: WorldOptions = {}): Promise<JournalWorld> {
  const { rocketmqEndpoints } = sharedStack();
  // SecantusDB slows down with all that it has kept: at full size, each proof begins on an empty one.
  const isOwn = IS_FULL || transactionLifetimeSeconds !== undefined;
  const own = isOwn ? await startOwn(transactionLifetimeSeconds) : null;
  const mongodbUri = own?.uri ?? sharedStack().mongodbUri;
  const producer = uniqueName('producer');
  const topic = await createTopic({ name: producer, queues });
  const client = await connectMongo({ uri: mongodbUri });
  await ensureOutboxCollections(client, producer);
  const broker = await createPublisher({ endpoints: rocketmqEndpoints, topics: [topic] });
  const publisher = carelessPublisher(broker, { carriageOf, lateMs });
  const outbox = createOutbox({ client, database: producer, source: 'proofs', catalogue: journalCatalogue(topic) });
  const relayDatabase = uniqueName('relay');
  const stopRelay = await startRelay({ client, producer, relayDatabase, publisher, options: relay });
  const undos: (() => Promise<unknown>)[] = [];
  return {
    client,
    mongodbUri,
    topic,
    producer,
    relayDatabase,
    outbox: client.db(producer).collection<OutboxDocument>(OUTBOX_COLLECTIONS.outbox),
    publisher,
    commit: (emissions) => commit(outbox, emissions),
    atEnd: (undo) => undos.push(undo),
    async close() {
      await Promise.all(undos.splice(0).map((undo) => undo()));
      await stopRelay();
      await broker.close();
      await client.close();
      await own?.stop();
    },
  };
}

function startOwn(transactionLifetimeSeconds = 60): Promise<MongoServer> {
  return startMongo({
    parameters: { transactionLifetimeLimitSeconds: String(transactionLifetimeSeconds) },
    environment: { ...process.env, MONGODB_URI: '' },
  });
}

async function commit(outbox: Outbox, emissions: readonly Emission[]): Promise<readonly string[]> {
  return outbox.transaction(async ({ emit }) => {
    const ids: string[] = [];
    for (const { aggregateId, orders = {} } of emissions) {
      const request = { aggregateType: AGGREGATE_TYPE, aggregateId, eventType: EVENT_TYPE, payload: { orders } };
      ids.push((await emit(request)).eventId);
    }
    return ids;
  });
}

async function startRelay({
  client,
  options,
  producer,
  publisher,
  relayDatabase: database,
}: {
  client: MongoClient;
  options: Partial<RelayOptions>;
  producer: string;
  publisher: Publisher;
  relayDatabase: string;
}): Promise<() => Promise<void>> {
  const owner = uniqueName('owner');
  await ensureRelayCollections(client, database);
  const namespaces = [namespace(`${producer}.${OUTBOX_COLLECTIONS.outbox}`)];
  const stores = createRelayStores({ client, database, namespaces, owner });
  const relay = createRelay(
    { ...stores, publisher, clock: systemClock, random: systemRandom, observe: () => undefined },
    { ...options, owner },
  );
  const ended = relay.run();
  // Told by the stop; until then the rejection must not count as nobody's.
  ended.catch(() => undefined);
  return async () => {
    await relay.stop();
    await ended;
  };
}
