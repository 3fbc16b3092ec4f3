import type { GroupStore, ParkedQueue } from '@nightporter/consumer';
import { NightporterError } from '@nightporter/protocol';
import type { ClientSession, MongoClient } from 'mongodb';

export interface GroupStoresOptions {
  readonly client: MongoClient;
  /** The consumer's own database. */
  readonly database: string;
  readonly group: string;
  /** How long an inbox record is kept; must be longer than anything can be redelivered. Default 90 days. */
  readonly inboxRetentionMs?: number;
}

export interface GroupStores {
  readonly store: GroupStore<ClientSession>;
  readonly parked: ParkedQueue;
}

/** Every database port of a consumer group, on MongoDB. */
export function createGroupStores(options: GroupStoresOptions): GroupStores {
  throw new NightporterError('NP_INTERNAL', `createGroupStores(${options.group}) is not there yet`);
}
