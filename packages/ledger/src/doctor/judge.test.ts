import { describe, expect, it } from 'vitest';
import { judgeDeployment, type DeploymentFacts } from './judge.js';

const DAY_MS = 86_400_000;
const relay = { database: 'relay', holders: ['a'], checkpoints: [{ shard: 'all', ageMs: 500 }], pauses: [] };
const group = {
  group: 'points',
  producer: 'orders',
  database: 'points',
  sweeper: 'w',
  lagMs: 10_000,
  dead: 0,
  setAside: 0,
  inboxRetentionMs: 90 * DAY_MS,
};
const outbox = { producer: 'orders', dead: 0, oldestPendingMs: 50 };

function historyOf(producer: string, reachMs: number): DeploymentFacts['histories'][number] {
  return { of: `${producer}-db:27017`, producers: [producer], history: { kind: 'known', reachMs } };
}

function endsAfter(limitMs: number): Pick<DeploymentFacts, 'transactionLifetimes'> {
  return { transactionLifetimes: [{ of: 'db:27017', limitMs }] };
}

const sound: DeploymentFacts = {
  engine: { engine: 'MongoDB', version: '7.0.14' },
  replicaSet: { name: 'rs0', members: 3, unhealthy: [] },
  missingIndexes: [],
  clockSkews: [{ of: 'db:27017', skewMs: 40 }],
  histories: [historyOf('orders', 3 * DAY_MS)],
  transactionLifetimes: [{ of: 'db:27017', limitMs: 60_000 }],
  handlersMs: 35_000,
  relay,
  outboxes: [outbox],
  groups: [group],
  brokerRetentionMs: 3 * DAY_MS,
};

describe('the doctor', () => {
  it('has nothing to say of a sound deployment', () => {
    expect(judgeDeployment(sound)).toEqual([]);
  });

  it.each<[string, Partial<DeploymentFacts>, string, string]>([
    ['a stand-in', { engine: { engine: 'SecantusDB', version: '0.7' } }, 'note', 'engine'],
    ['an old server', { engine: { engine: 'MongoDB', version: '5.0.1' } }, 'error', 'engine'],
    [
      'a server without a replica set',
      { replicaSet: { name: null, members: 1, unhealthy: [] } },
      'error',
      'replica-set',
    ],
    ['a replica set of one', { replicaSet: { name: 'rs0', members: 1, unhealthy: [] } }, 'note', 'replica-set'],
    ['a sick member', { replicaSet: { name: 'rs0', members: 3, unhealthy: ['b:27017'] } }, 'warning', 'replica-set'],
    [
      'members that nobody may ask after',
      { replicaSet: { name: 'rs0', members: 3, unhealthy: null } },
      'note',
      'replica-set',
    ],
    [
      'a missing index',
      { missingIndexes: [{ namespace: 'orders.outbox', index: 'x', role: 'orders-api' }] },
      'error',
      'indexes',
    ],
    ['a clock that is off', { clockSkews: [{ of: 'db:27017', skewMs: -3_600_000 }] }, 'warning', 'clock'],
    ['an oplog that is short', { histories: [historyOf('orders', 600_000)] }, 'note', 'history'],
    [
      'an oplog that is short, of whichever producer',
      { histories: [historyOf('orders', 3 * DAY_MS), historyOf('inventory', 600_000)] },
      'note',
      'history',
    ],
    [
      'an oplog that nobody may read',
      {
        histories: [{ of: 'db:27017', producers: ['orders'], history: { kind: 'unknown', reason: 'not authorized' } }],
      },
      'note',
      'history',
    ],
    ['transactions that end before handlers do', endsAfter(35_000), 'warning', 'transaction-lifetime'],
    ['handlers that may take longer', { ...endsAfter(60_000), handlersMs: 60_000 }, 'warning', 'transaction-lifetime'],
    ['transactions that end earlier than workers rely on', endsAfter(59_000), 'note', 'transaction-lifetime'],
    [
      'a server that does not tell when it ends transactions',
      {
        transactionLifetimes: [
          { of: 'db:27017', limitMs: 60_000 },
          { of: 'group-db:27017', limitMs: null },
        ],
      },
      'note',
      'transaction-lifetime',
    ],
    [
      'a checkpoint that falls behind',
      {
        histories: [historyOf('inventory', 5 * DAY_MS), historyOf('orders', 2 * DAY_MS)],
        relay: { ...relay, checkpoints: [{ shard: 'all', ageMs: 1.5 * DAY_MS }] },
      },
      'warning',
      'checkpoint',
    ],
    ['no relay', { relay: { ...relay, holders: [] } }, 'error', 'relay'],
    ['no relay anywhere', { relay: null }, 'warning', 'relay'],
    [
      'a pause',
      { relay: { ...relay, pauses: [{ scope: 'topic:orders-events', by: 'ada', reason: 'x' }] } },
      'warning',
      'relay',
    ],
    ['dead rows', { outboxes: [{ ...outbox, dead: 2 }] }, 'warning', 'outbox'],
    ['a stuck lane', { outboxes: [{ ...outbox, oldestPendingMs: 61_000 }] }, 'error', 'outbox'],
    ['a group that nobody knows', { groups: [{ ...group, database: null }] }, 'warning', 'group'],
    ['a group without a worker', { groups: [{ ...group, sweeper: null, lagMs: 301_000 }] }, 'error', 'group'],
    ['a group that lags', { groups: [{ ...group, lagMs: 301_000 }] }, 'warning', 'group'],
    ['dead letters', { groups: [{ ...group, dead: 1 }] }, 'warning', 'group'],
    ['messages set aside', { groups: [{ ...group, setAside: 1 }] }, 'warning', 'group'],
    [
      'an inbox that forgets too early',
      { groups: [{ ...group, inboxRetentionMs: 6 * DAY_MS - 1 }] },
      'warning',
      'inbox-retention',
    ],
    ['a broker that keeps messages for long', { brokerRetentionMs: 46 * DAY_MS }, 'warning', 'inbox-retention'],
  ])('names %s, and what mends it', (_what, facts, severity, check) => {
    const findings = judgeDeployment({ ...sound, ...facts });
    expect(findings).toMatchObject([{ severity, check }]);
    expect(findings[0]?.mend === null).toBe(severity === 'note');
  });
});
