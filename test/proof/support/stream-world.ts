import { defaultEventKey, type OutboxDocument } from '@nightporter/contracts';
import type { MongoOptions, MongoServer } from '@nightporter/embedded';
import {
  connectMongo,
  createRelayStores,
  ensureOutboxCollections,
  ensureRelayCollections,
  RELAY_COLLECTIONS,
  type CheckpointDocument,
  type RepairDocument,
} from '@nightporter/mongo';
import { aggregateKey, eventId, namespace } from '@nightporter/protocol';
import { createRelay, type Publisher, type Relay } from '@nightporter/relay';
import { systemClock, systemRandom } from '@nightporter/runtime';
import { checkHistory, type LandingRecord, type Violation } from '@nightporter/testing';
import { MongoClient, type Collection } from 'mongodb';
import { randomUUID } from 'node:crypto';
import { outboxDocument } from '../../conformance/mongo-samples.js';
import { until } from '../../e2e/programs.js';
import { startOwnMongo } from '../../integration/mongo-own-server.js';
import { watchStreams, type StreamWatch } from './stream-watch.js';

const DATABASE = 'orders';
const RELAY_DATABASE = 'relay';
const VERSIONS = 3;
const FILLED_AT_ONCE = 1_000;
/** Rows in memory after which the relay reads no more. */
export const BUFFER_MAX = 100;
const LIMITS = {
  bufferMax: BUFFER_MAX,
  // A proof need not wait a minute for what only a sweep finds.
  sweepEveryMs: 1_000,
  streamGraceMs: 2_000,
  checkpointEveryMs: 100,
  idleCheckpointEveryMs: 500,
  standbyEveryMs: 200,
};

export interface StreamVerdict {
  readonly violations: readonly Violation[];
  readonly written: number;
  /** Beyond the first of each event. */
  readonly sentAgain: number;
}

/** A relay engine in this process, on a database server of its own; what it sends lands in memory. */
export interface StreamWorld {
  readonly server: MongoServer;
  /** Not the relay's. */
  readonly client: MongoClient;
  readonly outbox: Collection<OutboxDocument>;
  readonly checkpoints: Collection<CheckpointDocument>;
  /** What the relay's driver has asked the server for. */
  readonly streams: StreamWatch;
  /** Of the relay that was started last. */
  readonly rowsInMemory: number;
  /** Starts a relay, which stands in the end where the stream is followed. */
  start(): Promise<void>;
  /** Drains the relay that was started last. */
  stop(): Promise<void>;
  /** While it is closed the broker answers nothing, so that the relay soon reads no more. */
  closeBroker(): void;
  openBroker(): void;
  /** Commits so many events, three to an aggregate. */
  write(count: number): Promise<void>;
  /** The same, so that no change stream brings them: they come into their slot only by an update. */
  writeUnseen(count: number): Promise<void>;
  /**
   * Commits the first event of an aggregate in a transaction that is open until `meanwhile` has ended, and then the second one. No stream
   * brings either of them.
   */
  writeUnseenAround(meanwhile: () => Promise<void>): Promise<void>;
  /** Writes so much elsewhere that a history of so many entries holds nothing else. */
  forget(entries: number): Promise<void>;
  untilPublished(): Promise<void>;
  repairs(): Promise<readonly RepairDocument[]>;
  /** Compares what was written with what has landed. */
  judge(): Promise<StreamVerdict>;
  close(): Promise<void>;
}

/** @throws where the server does not start. `close` ends it. */
export async function createStreamWorld(options: MongoOptions = {}): Promise<StreamWorld> {
  const server = await startOwnMongo(options);
  const client = await connectMongo({ uri: server.uri });
  await ensureOutboxCollections(client, DATABASE);
  await ensureRelayCollections(client, RELAY_DATABASE);
  const relayClient = new MongoClient(server.uri, { monitorCommands: true, serverSelectionTimeoutMS: 5_000 });
  const streams = watchStreams(relayClient);
  const outbox = client.db(DATABASE).collection<OutboxDocument>('outbox');
  const own = client.db(RELAY_DATABASE);
  const broker = memoryBroker();
  const written: OutboxDocument[] = [];
  const relays: { readonly relay: Relay; readonly running: Promise<void> }[] = [];

  const write = async (count: number, change: (document: OutboxDocument) => object): Promise<void> => {
    const documents = newDocuments(count);
    await outbox.insertMany(documents.map((document) => ({ ...document, ...change(document) })));
    written.push(...documents);
  };
  const stop = async (): Promise<void> => {
    const last = relays.pop();
    await last?.relay.stop();
    await last?.running;
  };
  return {
    server,
    client,
    outbox,
    checkpoints: own.collection<CheckpointDocument>(RELAY_COLLECTIONS.checkpoints),
    streams,
    get rowsInMemory() {
      return relays.at(-1)?.relay.snapshot().shards[0]?.rowsInMemory ?? 0;
    },
    start: async () => {
      const owner = `relay-${randomUUID()}`;
      const namespaces = [namespace(`${DATABASE}.outbox`)];
      const stores = createRelayStores({ client: relayClient, database: RELAY_DATABASE, namespaces, owner });
      const { publisher } = broker;
      const ports = { ...stores, publisher, clock: systemClock, random: systemRandom, observe: () => undefined };
      const relay = createRelay(ports, { owner, ...LIMITS });
      relays.push({ relay, running: relay.run() });
      await until('the relay follows the stream', () =>
        Promise.resolve(relay.snapshot().shards[0]?.state === 'following'),
      );
    },
    stop,
    closeBroker: () => {
      broker.close();
    },
    openBroker: () => {
      broker.open();
    },
    write: (count) => write(count, () => ({})),
    writeUnseen: async (count) => {
      const from = written.length;
      await write(count, () => ({ slot: -1 }));
      const updates = written.slice(from).map(({ _id, slot }) => ({ filter: { _id }, update: { $set: { slot } } }));
      await outbox.bulkWrite(updates.map((updateOne) => ({ updateOne })));
    },
    writeUnseenAround: async (meanwhile) => {
      const [first, second] = newDocuments(2) as [OutboxDocument, OutboxDocument];
      await client.withSession(async (session) => {
        session.startTransaction();
        await outbox.insertOne({ ...first, slot: -1 as OutboxDocument['slot'] }, { session });
        await outbox.updateOne({ _id: first._id }, { $set: { slot: first.slot } }, { session });
        await meanwhile();
        await session.commitTransaction();
      });
      await outbox.insertOne({ ...second, slot: -1 as OutboxDocument['slot'] });
      await outbox.updateOne({ _id: second._id }, { $set: { slot: second.slot } });
      written.push(first, second);
    },
    forget: async (entries) => {
      const filler = client.db('filler').collection<{ n: number }>('filler');
      for (let from = 0; from < entries; from += FILLED_AT_ONCE) {
        await filler.insertMany(Array.from({ length: FILLED_AT_ONCE }, (_, n) => ({ n: from + n })));
      }
    },
    untilPublished: () =>
      until(
        `${written.length} events have landed, and their rows say so`,
        async () =>
          new Set(broker.landings.map(({ eventId: id }) => id)).size >= written.length &&
          (await outbox.countDocuments({ status: { $ne: 'PUBLISHED' } })) === 0,
        60_000,
      ),
    repairs: () => own.collection<RepairDocument>(RELAY_COLLECTIONS.repairs).find().sort({ _id: 1 }).toArray(),
    judge: () => judge({ outbox, written, landings: broker.landings }),
    close: async () => {
      broker.open();
      while (relays.length > 0) await stop();
      await relayClient.close();
      await client.close();
      await server.stop();
    },
  };
}

interface MemoryBroker {
  readonly publisher: Publisher;
  readonly landings: readonly LandingRecord[];
  close(): void;
  open(): void;
}

function memoryBroker(): MemoryBroker {
  const landings: LandingRecord[] = [];
  let gate = Promise.resolve();
  let openGate = (): void => undefined;
  const publisher: Publisher = {
    publish: async ({ row }) => {
      await gate;
      landings.push({ eventId: row.eventId, form: row.form, digest: row.digest });
      return { messageId: `message ${landings.length}` };
    },
  };
  return {
    publisher,
    landings,
    close: () => {
      gate = new Promise((resolve) => {
        openGate = resolve;
      });
    },
    open: () => {
      openGate();
    },
  };
}

function newDocuments(count: number): OutboxDocument[] {
  const batch = randomUUID();
  return Array.from({ length: count }, (_, index) => {
    const aggregateId = `${batch}-${Math.floor(index / VERSIONS)}`;
    const identity = { source: DATABASE, aggregateType: 'sample', aggregateId };
    const version = (index % VERSIONS) + 1;
    return outboxDocument({ ...identity, version, id: eventId(randomUUID()), eventKey: defaultEventKey(identity) });
  });
}

async function judge(told: {
  outbox: Collection<OutboxDocument>;
  written: readonly OutboxDocument[];
  landings: readonly LandingRecord[];
}): Promise<StreamVerdict> {
  const { outbox, written, landings } = told;
  const unpublished = await outbox.find({ status: { $ne: 'PUBLISHED' } }).toArray();
  const violations = checkHistory({
    atRest: true,
    committed: written.map((row) => ({
      eventId: row._id,
      aggregate: aggregateKey(row),
      version: row.aggregateVersion,
      digest: row.digest,
    })),
    landings,
    unpublished: unpublished.map(({ _id, status }) => ({ eventId: _id, status })),
    groups: [],
  });
  const distinct = new Set(landings.map(({ eventId: id }) => id)).size;
  return { violations, written: written.length, sentAgain: landings.length - distinct };
}
