import { systemClock, systemRandom, type Logger } from '@nightporter/runtime';
import type { Db, MongoClient } from 'mongodb';
import { DeliveryLoop, type DeliveryOptions } from './loop.js';
import { createDeliveryQueue } from './mongo-queue.js';

/** What a delivery sets by itself: the defaults of the notification worker. */
const DEFAULTS = {
  deliveriesMax: 16,
  pollMs: 500,
  claimMs: 30_000,
  sendTimeoutMs: 10_000,
  attemptsMax: 30,
  retryFirstMs: 1_000,
  retryCapMs: 900_000,
} as const;

/** Sends what the handlers of a worker put down in its database: a worker's `companion`. */
export function createDelivery(
  { client, database, logger }: { readonly client: MongoClient; readonly database: Db; readonly logger: Logger },
  options: Pick<DeliveryOptions, 'senders' | 'drainMs' | 'metrics'> &
    Partial<Pick<DeliveryOptions, keyof typeof DEFAULTS>>,
): DeliveryLoop {
  const queue = createDeliveryQueue({ client, database: database.databaseName });
  return new DeliveryLoop({ ...DEFAULTS, ...options, queue, clock: systemClock, random: systemRandom, logger });
}
