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
import type { Logger } from '@nightporter/runtime';
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
  readonly logger: Pick<Logger, 'warn'>;
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
  { client, database, files, from, group, logger, unavailable }: ProducerRegistration,
  producer: Producer,
): Promise<GroupProducer> {
  const archive = files === null ? {} : { files };
  await ensureOutboxCollections(client, producer.database);
  const start = from === 'now' ? { from } : { from, unavailable };
  const ledger = createProducerLedger({ client, database: producer.database, ...archive });
  const { topics } = producer;
  const registered = await registerGroup(client, producer.database, { group, topics, database, ledger, ...start });
  warnOfRemoved(logger, producer, registered);
  return { ledger, registry: createGroupRegistry({ client, database: producer.database, group }) };
}

async function registerAtServer(
  { client, database, from, group, logger, unavailable }: ProducerRegistration,
  producer: Producer,
  server: NonNullable<ResolvedSubscription['ledgerServer']>,
): Promise<GroupProducer> {
  const place = { ...server, producer: producer.database };
  const positions = createStartPositions({ client, database, group });
  const { topics } = producer;
  warnOfRemoved(logger, producer, await registerOverHttp({ ...place, group, topics, from, unavailable, positions }));
  return { ledger: createHttpLedger(place), registry: createHttpGroupRegistry({ ...place, group }) };
}

/** Meant where a subscription was dropped; in the middle of a rollout an older version takes away what a newer one reads. */
function warnOfRemoved(
  logger: Pick<Logger, 'warn'>,
  { database: producer }: Producer,
  { topicsRemoved }: { readonly topicsRemoved: readonly string[] },
): void {
  if (topicsRemoved.length === 0) return;
  logger.warn(
    { producer, topics: topicsRemoved },
    'topics taken out of the group’s entry, since this version does not subscribe to them: nothing of them is swept or kept for the group, until a worker starts that does',
  );
}
