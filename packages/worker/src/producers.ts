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
  readonly unavailable: 'refuse' | 'accept';
}

/**
 * Registers the group with every producer, and returns their ledgers. The producers may not have started yet, and the group must be
 * registered before its first event can be deleted.
 */
export async function registerWithProducers(
  { client, group, database, from, unavailable }: ProducerRegistration,
  subscriptions: readonly ResolvedSubscription[],
): Promise<readonly GroupProducer[]> {
  const producers: GroupProducer[] = [];
  for (const producer of new Set(subscriptions.map(({ producerDatabase }) => producerDatabase))) {
    const topics = subscriptions
      .filter(({ producerDatabase }) => producerDatabase === producer)
      .map(({ topic }) => topic);
    await ensureOutboxCollections(client, producer);
    const start = from === 'now' ? { from } : { from, unavailable };
    await registerGroup(client, producer, { group, topics, database, ...start });
    producers.push({
      ledger: createProducerLedger({ client, database: producer }),
      registry: createGroupRegistry({ client, database: producer, group }),
    });
  }
  return producers;
}
