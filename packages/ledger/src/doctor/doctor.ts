import { engineOf, guarded, missingIndexes, transactionLifetimeLimitMs } from '@nightporter/mongo';
import { MongoServerError, type MongoClient } from 'mongodb';
import { placeOfGroup, type Deployment, type Place } from '../questions/deployment.js';
import { inboxRetentionOf } from '../questions/inbox-retention.js';
import { status, type Status } from '../questions/status.js';
import type { Finding } from './finding.js';
import { historiesOf, hostsOf, readHistory } from './histories.js';
import { judgeDeployment, type DeploymentFacts } from './judge.js';

export interface Examination {
  readonly findings: readonly Finding[];
  /** For whoever can ask the broker. */
  readonly registered: readonly { readonly group: string; readonly topics: readonly string[] }[];
}

/** What only the workers know. */
export interface ExaminationOptions {
  /** Their BROKER_RETENTION_HOURS. Default 72 h. */
  readonly brokerRetentionMs?: number;
  /** The longest that a handler of theirs may take. Default 30,000 ms, as for a worker that is told nothing. */
  readonly handlerMs?: number;
  /** How long a transaction of theirs takes on more work. Default 5,000 ms, alike. */
  readonly transactionMs?: number;
}

/** As the setting BROKER_RETENTION_HOURS has it, and a broker that is told nothing. */
const BROKER_RETENTION_MS = 72 * 3_600_000;
/** As a worker has them whose definition tunes nothing. */
const HANDLER_MS = 30_000;
const TRANSACTION_MS = 5_000;

/** Looks at all databases of a deployment. Rejects with NP_STORE_UNAVAILABLE. */
export async function doctor(
  deployment: Deployment,
  client: MongoClient,
  {
    brokerRetentionMs = BROKER_RETENTION_MS,
    handlerMs = HANDLER_MS,
    transactionMs = TRANSACTION_MS,
  }: ExaminationOptions = {},
): Promise<Examination> {
  return guarded('examining the deployment', async () => {
    const standing = await status(deployment, client);
    const findings = judgeDeployment({
      engine: await engineOf(client),
      replicaSet: await replicaSetOf(client),
      missingIndexes: await indexesOf(deployment),
      clockSkews: await skewsOf(deployment, client),
      histories: await historiesOf(deployment.producers, readHistory),
      transactionLifetimes: await transactionLifetimesOf(deployment, client),
      handlersMs: handlerMs + transactionMs,
      brokerRetentionMs,
      ...(await standingFacts(deployment, standing)),
    });
    return { findings, registered: standing.groups.map(({ group, topics }) => ({ group, topics })) };
  });
}

async function replicaSetOf(client: MongoClient): Promise<DeploymentFacts['replicaSet']> {
  const hello = await client.db('admin').command({ hello: 1 });
  const name: unknown = hello['setName'];
  const hosts: unknown = hello['hosts'];
  const members = Array.isArray(hosts) ? hosts.length : 1;
  return { name: typeof name === 'string' ? name : null, members, unhealthy: await unhealthyMembers(client) };
}

/** Not every user may ask, and not every server answers: then it is not known. */
async function unhealthyMembers(client: MongoClient): Promise<readonly string[] | null> {
  try {
    const found = await client.db('admin').command({ replSetGetStatus: 1 });
    const members = (found['members'] ?? []) as { readonly name: string; readonly health?: number }[];
    return members.filter(({ health }) => health === 0).map(({ name }) => name);
  } catch (error) {
    if (error instanceof MongoServerError) return null;
    throw error;
  }
}

async function indexesOf({ groups, producers, relay }: Deployment): Promise<DeploymentFacts['missingIndexes']> {
  const missing: DeploymentFacts['missingIndexes'][number][] = [];
  const look = async (
    { client, database }: Place,
    kind: 'producer' | 'relay' | 'consumer',
    role: string,
  ): Promise<void> => {
    for (const { collection, index } of await missingIndexes(client, { database, kind }))
      missing.push({ namespace: `${database}.${collection}`, index, role });
  };
  for (const producer of producers) await look(producer, 'producer', `the service that writes ${producer.database}`);
  for (const home of groups) await look(home, 'consumer', `a worker of group ${home.group}`);
  if (relay !== null) await look(relay, 'relay', 'the relay');
  return missing;
}

async function skewsOf({ groups }: Deployment, client: MongoClient): Promise<DeploymentFacts['clockSkews']> {
  const skews: DeploymentFacts['clockSkews'][number][] = [];
  for (const one of new Set([client, ...groups.map((home) => home.client)])) {
    const sentAtMs = Date.now();
    const { localTime } = (await one.db('admin').command({ hello: 1 })) as unknown as { readonly localTime: Date };
    const halfwayMs = (sentAtMs + Date.now()) / 2;
    skews.push({ of: hostsOf(one), skewMs: halfwayMs - localTime.getTime() });
  }
  return skews;
}

/** Of producers' deployments, on which relays read, and of groups', on which handlers run. */
async function transactionLifetimesOf(
  { groups, producers }: Deployment,
  client: MongoClient,
): Promise<DeploymentFacts['transactionLifetimes']> {
  const lifetimes: DeploymentFacts['transactionLifetimes'][number][] = [];
  for (const one of new Set([client, ...producers.map((place) => place.client), ...groups.map((home) => home.client)]))
    lifetimes.push({ of: hostsOf(one), limitMs: await transactionLifetimeLimitMs(one) });
  return lifetimes;
}

async function standingFacts(
  deployment: Deployment,
  { groups, outboxes, relay }: Status,
): Promise<Pick<DeploymentFacts, 'relay' | 'outboxes' | 'groups'>> {
  const grouped: DeploymentFacts['groups'][number][] = [];
  for (const { database, group, lagMs, parked, producer, sweeper } of groups) {
    const home = placeOfGroup(deployment, group);
    const inboxRetentionMs = home === null ? null : await inboxRetentionOf(home);
    const counts = { dead: parked?.dead ?? 0, setAside: parked?.setAside ?? 0 };
    grouped.push({ group, producer, database, sweeper, lagMs, ...counts, inboxRetentionMs });
  }
  return {
    relay:
      relay === null
        ? null
        : {
            database: relay.database,
            holders: relay.leases.filter(({ isAlive }) => isAlive).map(({ owner }) => owner),
            checkpoints: relay.checkpoints,
            pauses: relay.pauses.map(({ _id, by, reason }) => ({ scope: _id, by, reason })),
          },
    outboxes: outboxes.map(({ producer, unsettled }) => ({
      producer,
      dead: unsettled.DEAD.rows,
      oldestPendingMs: unsettled.PENDING.oldestAgeMs,
    })),
    groups: grouped,
  };
}
