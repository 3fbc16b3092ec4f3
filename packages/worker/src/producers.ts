import type { GroupProducer } from '@nightporter/consumer';
import { createGroupRegistry, createProducerLedger, ensureOutboxCollections, registerGroup } from '@nightporter/mongo';
import type { MongoClient } from 'mongodb';
import type { ResolvedSubscription } from './settings.js';

export interface ProducerRegistration {
  readonly client: MongoClient;
  readonly group: string;
  /** The worker's own database. */
  readonly database: string;
  readonly from: 'beginning' | 'now';
}

/**
 * Registers the group with every producer, and returns their ledgers. The producers may not have started yet, and the group must be
 * registered before its first event can be deleted.
 */
export async function registerWithProducers(
  { client, group, database, from }: ProducerRegistration,
  subscriptions: readonly ResolvedSubscription[],
): Promise<readonly GroupProducer[]> {
  const producers: GroupProducer[] = [];
  for (const producer of new Set(subscriptions.map(({ producerDatabase }) => producerDatabase))) {
    const topics = subscriptions
      .filter(({ producerDatabase }) => producerDatabase === producer)
      .map(({ topic }) => topic);
    await ensureOutboxCollections(client, producer);
    await registerGroup(client, producer, { group, topics, from, database });
    producers.push({
      ledger: createProducerLedger({ client, database: producer }),
      registry: createGroupRegistry({ client, database: producer, group }),
    });
  }
  return producers;
}
