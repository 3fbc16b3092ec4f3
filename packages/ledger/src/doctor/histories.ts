import { createRelayStores } from '@nightporter/mongo';
import { namespace } from '@nightporter/protocol';
import type { MongoClient } from 'mongodb';
import type { Place } from '../questions/deployment.js';
import type { DeploymentFacts } from './judge.js';

type History = DeploymentFacts['histories'][number];

/** An oplog is a deployment's: `read` is asked once for all producers that are on it. */
export async function historiesOf(
  producers: readonly Place[],
  read: (place: Place) => Promise<History['history']>,
): Promise<readonly History[]> {
  const histories: History[] = [];
  for (const client of new Set(producers.map((producer) => producer.client))) {
    const databases = producers.filter((producer) => producer.client === client).map(({ database }) => database);
    const [database = ''] = databases;
    histories.push({ of: hostsOf(client), producers: databases, history: await read({ client, database }) });
  }
  return histories;
}

/** As the relay reads it. */
export async function readHistory({ client, database }: Place): Promise<History['history']> {
  const namespaces = [namespace(`${database}.outbox`)];
  return (await createRelayStores({ client, database, namespaces }).stats.read()).history;
}

export function hostsOf({ options: { hosts } }: MongoClient): string {
  return hosts.join(', ');
}
