import { NightporterError } from '@nightporter/protocol';
import type { MongoClient } from 'mongodb';

export interface GroupRegistration {
  readonly group: string;
  readonly topics: readonly string[];
  /** Where the group starts when it is new; `beginning` unless said otherwise. */
  readonly from?: 'beginning' | 'now';
}

/** Names a group in the producer's `groups`, so that retention waits for it; raises the revision of `registry` when anything changed. */
export function registerGroup(
  client: MongoClient,
  producerDatabase: string,
  registration: GroupRegistration,
): Promise<void> {
  return Promise.reject(
    new NightporterError(
      'NP_INTERNAL',
      `registerGroup(${client.db(producerDatabase).databaseName}, ${registration.group}) is not there yet`,
    ),
  );
}
