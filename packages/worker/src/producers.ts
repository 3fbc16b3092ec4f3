import type { GroupProducer } from '@nightporter/consumer';
import { createHttpGroupRegistry, createHttpLedger, registerOverHttp } from '@nightporter/ledger-http';
import {
  createGroupRegistry,
  createProducerLedger,
  createStartPositions,
  ensureOutboxCollections,
  registerGroup,
  type ArchiveFiles,
} from '@nightporter/mongo';
import type { MongoClient } from 'mongodb';
import type { ResolvedSubscription } from './settings.js';

export interface ProducerRegistration {
  readonly client: MongoClient;
  readonly group: string;
  /** The worker's own database. */
  readonly database: string;
  readonly from: 'beginning' | 'now';
  readonly unavailable: 'refuse' | 'accept';
  /** Where archive files are, if there are any. */
  readonly files: ArchiveFiles | null;
}

interface Producer {
  readonly database: string;
  readonly topics: readonly string[];
}

/**
 * Registers the group with every producer, and returns their ledgers. The producers may not have started yet, and the group must be
 * registered before its first event can be deleted.
 */
export async function registerWithProducers(
  registration: ProducerRegistration,
  subscriptions: readonly ResolvedSubscription[],
): Promise<readonly GroupProducer[]> {
  const producers: GroupProducer[] = [];
  for (const database of new Set(subscriptions.map(({ producerDatabase }) => producerDatabase))) {
    const own = subscriptions.filter(({ producerDatabase }) => producerDatabase === database);
    const producer = { database, topics: own.map(({ topic }) => topic) };
    const server = own.map(({ ledgerServer }) => ledgerServer).find((one) => one !== null);
    producers.push(
      server === undefined
        ? await registerInDatabase(registration, producer)
        : await registerAtServer(registration, producer, server),
    );
  }
  return producers;
}

async function registerInDatabase(
  { client, database, files, from, group, unavailable }: ProducerRegistration,
  producer: Producer,
): Promise<GroupProducer> {
  const archive = files === null ? {} : { files };
  await ensureOutboxCollections(client, producer.database);
  const start = from === 'now' ? { from } : { from, unavailable };
  const ledger = createProducerLedger({ client, database: producer.database, ...archive });
  await registerGroup(client, producer.database, { group, topics: producer.topics, database, ledger, ...start });
  return { ledger, registry: createGroupRegistry({ client, database: producer.database, group }) };
}

async function registerAtServer(
  { client, database, from, group, unavailable }: ProducerRegistration,
  producer: Producer,
  server: NonNullable<ResolvedSubscription['ledgerServer']>,
): Promise<GroupProducer> {
  const place = { ...server, producer: producer.database };
  const positions = createStartPositions({ client, database, group });
  await registerOverHttp({ ...place, group, topics: producer.topics, from, unavailable, positions });
  return { ledger: createHttpLedger(place), registry: createHttpGroupRegistry({ ...place, group }) };
}
