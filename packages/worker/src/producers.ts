import type { GroupProducer } from '@nightporter/consumer';
import {
  createArchiveFolder,
  createGroupRegistry,
  createProducerLedger,
  ensureOutboxCollections,
  registerGroup,
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
  readonly archiveFolder: string | null;
}

/**
 * Registers the group with every producer, and returns their ledgers. The producers may not have started yet, and the group must be
 * registered before its first event can be deleted.
 */
export async function registerWithProducers(
  { archiveFolder, client, group, database, from, unavailable }: ProducerRegistration,
  subscriptions: readonly ResolvedSubscription[],
): Promise<readonly GroupProducer[]> {
  const archive = archiveFolder === null ? {} : { files: createArchiveFolder(archiveFolder) };
  const producers: GroupProducer[] = [];
  for (const producer of new Set(subscriptions.map(({ producerDatabase }) => producerDatabase))) {
    const topics = subscriptions
      .filter(({ producerDatabase }) => producerDatabase === producer)
      .map(({ topic }) => topic);
    await ensureOutboxCollections(client, producer);
    const start = from === 'now' ? { from } : { from, unavailable };
    const ledger = createProducerLedger({ client, database: producer, ...archive });
    await registerGroup(client, producer, { group, topics, database, ledger, ...start });
    producers.push({
      ledger,
      registry: createGroupRegistry({ client, database: producer, group }),
    });
  }
  return producers;
}
