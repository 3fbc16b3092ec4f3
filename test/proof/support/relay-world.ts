import type { OutboxDocument } from '@nightporter/contracts';
import type { TopicRequest } from '@nightporter/embedded';
import { connectMongo, ensureOutboxCollections, RELAY_COLLECTIONS, type LeaseDocument } from '@nightporter/mongo';
import { aggregateKey, namespace, type Namespace } from '@nightporter/protocol';
import { checkHistory, type Violation, type ViolationKind } from '@nightporter/testing';
import type { Collection, MongoClient } from 'mongodb';
import { runService, until, type Program, type ServiceName } from '../../e2e/programs.js';
import { uniqueName } from '../../support/stack.js';
import { messagesIn, readLandings } from './landings.js';
import type { ProofServers } from './servers.js';

/** What came out of it, and what a plain subscriber and the outbox say about it. */
export interface Verdict {
  readonly violations: readonly Violation[];
  /** For the figures. */
  readonly counts: {
    readonly published: number;
    readonly lost: number;
    readonly misordered: number;
    readonly altered: number;
    /** Messages at the broker beyond the first of each event: allowed, and each consumer's to know. */
    readonly sentAgain: number;
  };
}

/** One outbox, its topics and as many relays as a proof wants, beside whatever else uses the servers. */
export interface RelayWorld {
  readonly servers: ProofServers;
  readonly client: MongoClient;
  readonly database: string;
  readonly relayDatabase: string;
  readonly namespace: Namespace;
  readonly topics: readonly string[];
  readonly rows: Collection<OutboxDocument>;
  /** Another service on the same servers. */
  startService(name: ServiceName, settings: Record<string, string>): Program;
  startRelay(settings?: Record<string, string>): Program;
  /** The relay that holds the lease, and its epoch; null while none does. */
  leader(): Promise<{ readonly relay: Program; readonly epoch: number } | null>;
  /** How many shards each of these relays holds, and who holds which. */
  shares(relays: readonly Program[]): Promise<readonly (readonly string[])[]>;
  /** Messages at the broker, repeats included: cheap to ask, so that a proof can watch while it loads the database. */
  messageCount(): Promise<number>;
  publishedCount(): Promise<number>;
  /** Waits until every row is published, and so many there are. */
  untilPublished(events: number, limitMs: number): Promise<void>;
  /** At rest: compares outbox and topics. */
  judge(): Promise<Verdict>;
  close(): Promise<void>;
}

export interface WorldRequest {
  readonly servers: ProofServers;
  /** Default: one with a name of its own. */
  readonly topics?: readonly TopicRequest[];
}

export async function createRelayWorld(request: WorldRequest): Promise<RelayWorld> {
  const { servers, topics: topicRequests = [{ name: uniqueName('proof-events') }] } = request;
  const database = uniqueName('proof');
  const relayDatabase = uniqueName('relay');
  const group = uniqueName('reader');
  for (const topic of topicRequests) await servers.createTopic(topic);
  const topics = topicRequests.map(({ name }) => name);
  await servers.createGroup({ name: group, topics });
  const client = await connectMongo({ uri: servers.mongodbUri, poolMax: 50 });
  await ensureOutboxCollections(client, database);
  const rows = client.db(database).collection<OutboxDocument>('outbox');
  const relays: Program[] = [];
  const others: Program[] = [];
  const leases = client.db(relayDatabase).collection<LeaseDocument>(RELAY_COLLECTIONS.leases);
  const publishedCount = () => rows.countDocuments({ status: 'PUBLISHED' });
  const messageCount = async (): Promise<number> => {
    const queues = (await Promise.all(topics.map((topic) => servers.offsets({ topic })))).flat();
    return messagesIn(queues);
  };

  return {
    servers,
    client,
    database,
    relayDatabase,
    namespace: namespace(`${database}.outbox`),
    topics,
    rows,
    startService: (name, settings) => {
      const service = runService(name, {
        MONGODB_URI: servers.mongodbUri,
        ROCKETMQ_ENDPOINTS: servers.rocketmqEndpoints,
        ...settings,
      });
      others.push(service);
      return service;
    },
    startRelay: (settings = {}) => {
      const relay = runService('relay', {
        MONGODB_URI: servers.mongodbUri,
        ROCKETMQ_ENDPOINTS: servers.rocketmqEndpoints,
        MONGODB_DB: relayDatabase,
        OUTBOX_NAMESPACES: `${database}.outbox`,
        TOPICS: topics.join(','),
        ...settings,
      });
      relays.push(relay);
      return relay;
    },
    leader: async () => {
      const lease = await leases.findOne({});
      const relay = relays.find((one) => one.isRunning && lease?.owner.split(':')[1] === String(one.processId));
      return lease === null || relay === undefined ? null : { relay, epoch: lease.epoch };
    },
    shares: async (among) => {
      const held = await leases.find({ expiresAt: { $gt: new Date() } }).toArray();
      const processOf = ({ owner }: LeaseDocument): string | undefined => owner.split(':')[1];
      return among.map((relay) =>
        held.filter((lease) => processOf(lease) === String(relay.processId)).map(({ _id }) => _id),
      );
    },
    messageCount,
    publishedCount,
    untilPublished: async (events, limitMs) => {
      await until(`${events} events are published`, async () => (await messageCount()) >= events, limitMs);
      await until(`${events} rows say so`, async () => (await publishedCount()) === events);
    },
    judge: async () => judge(rows, await Promise.all(topics.map((topic) => readLandings(servers, { topic, group })))),
    close: async () => {
      await Promise.all([...relays, ...others].map((program) => program.destroy()));
      await client.close();
    },
  };
}

async function judge(
  rows: Collection<OutboxDocument>,
  topics: readonly Awaited<ReturnType<typeof readLandings>>[],
): Promise<Verdict> {
  const documents = await rows.find({}).toArray();
  const landings = topics.flatMap(({ records }) => records);
  const violations = checkHistory({
    atRest: true,
    committed: documents.map((row) => ({
      eventId: row._id,
      aggregate: aggregateKey(row),
      version: row.aggregateVersion,
      digest: row.digest,
      topic: row.topic,
    })),
    landings,
    unpublished: documents
      .filter(({ status }) => status !== 'PUBLISHED')
      .map(({ _id, status }) => ({ eventId: _id, status })),
    groups: [],
  });
  const countOf = (kind: ViolationKind): number => violations.filter((violation) => violation.kind === kind).length;
  const distinct = new Set(landings.map(({ eventId }) => eventId)).size;
  return {
    violations,
    counts: {
      published: documents.filter(({ status }) => status === 'PUBLISHED').length,
      lost: countOf('lost'),
      misordered: countOf('out of order'),
      altered: countOf('altered'),
      sentAgain: topics.reduce((sum, { messages }) => sum + messages, 0) - distinct,
    },
  };
}
