import type {
  DeadLetterCopies,
  GapFinder,
  GroupStore,
  ParkedQueue,
  RepeatedEvents,
  StartedRecords,
} from '@nightporter/consumer';
import { NightporterError } from '@nightporter/protocol';
import type { ClientSession, MongoClient } from 'mongodb';
import { createDeadLetterCopies } from './dead-letter-copies.js';
import { durableDatabase } from './database.js';
import { createDatabaseClock } from './database-clock.js';
import { createGapFinder } from './gap-finder.js';
import { groupCollections } from './group-collections.js';
import { createGroupStore } from './group-store.js';
import { createParkedQueue } from './parked-queue.js';
import { createRepeatedEvents } from './repeated-events.js';
import { createStartedRecords } from './started-records.js';

export interface GroupStoresOptions {
  readonly client: MongoClient;
  /** The consumer's own database. */
  readonly database: string;
  readonly group: string;
  /** How long an inbox record is kept; must be longer than anything can be redelivered. Default 90 days. */
  readonly inboxRetentionMs?: number;
  /** Whether each dead letter leaves a copy in `copies`. Default false. */
  readonly copiesDeadLetters?: boolean;
}

export interface GroupStores {
  readonly store: GroupStore<ClientSession>;
  readonly parked: ParkedQueue;
  readonly started: StartedRecords;
  readonly gaps: GapFinder;
  readonly repeats: RepeatedEvents;
  readonly copies: DeadLetterCopies;
}

const INBOX_RETENTION_MS = 90 * 24 * 60 * 60 * 1_000;

/** Every database port of a consumer group, on MongoDB. */
export function createGroupStores(options: GroupStoresOptions): GroupStores {
  const { client, group, inboxRetentionMs = INBOX_RETENTION_MS, copiesDeadLetters = false } = options;
  if (group === '') throw new NightporterError('NP_CONFIG_INVALID', 'The name of a consumer group is empty.');
  if (!Number.isSafeInteger(inboxRetentionMs) || inboxRetentionMs < 1) {
    const message = `inboxRetentionMs of group ${group} is ${inboxRetentionMs}; accepted: an integer of 1 or more.`;
    throw new NightporterError('NP_CONFIG_INVALID', message);
  }
  const database = durableDatabase(client, options.database);
  const collections = groupCollections(database);
  const clock = createDatabaseClock(client);
  return {
    store: createGroupStore({ client, group, collections, clock, inboxRetentionMs, copiesDeadLetters }),
    parked: createParkedQueue({ client, group, collections, clock }),
    repeats: createRepeatedEvents(collections, group),
    started: createStartedRecords(database, group),
    gaps: createGapFinder({ group, collections, clock }),
    copies: createDeadLetterCopies({ group, collections, clock }),
  };
}
