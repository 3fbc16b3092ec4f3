import type { ShardSnapshot } from '@nightporter/relay';
import { describe, expect, it } from 'vitest';
import { relayProblems, type SendHealth } from './health.js';

const failing: SendHealth = { topic: 'orders-events', failuresInARow: 3, sinceLastMs: 900, lastError: 'timed out' };

function shardOf(shard: Partial<ShardSnapshot>): ShardSnapshot {
  const healthy = {
    shard: 'all',
    state: 'following',
    topicsClosed: [],
    paused: { all: false, topics: [] },
    rowsInMemory: 0,
    leaseFailuresInARow: 0,
    sinceLeaseAnswerMs: 1_000,
    otherMap: null,
    sinceAheadMs: 10,
    unmarkedForMs: null,
    uncoveredForMs: null,
    sinceReadMs: 10,
  };
  return { ...healthy, ...shard } as ShardSnapshot;
}

function problemsOf(shard: Partial<ShardSnapshot>, sends: readonly SendHealth[] = []): readonly string[] {
  return relayProblems({ owner: 'me', sharing: null, outbox: null, shards: [shardOf(shard)] }, sends);
}

const standby: Partial<ShardSnapshot> = { state: 'standby', sinceReadMs: null, sinceAheadMs: null };

describe('the readiness of a relay that shares shards', () => {
  const sharing = { instances: 2, share: 1, held: 1, announceFailuresInARow: 2 };
  const problems = (given: Partial<typeof sharing> | { share: null }): readonly string[] =>
    relayProblems({ owner: 'me', sharing: { ...sharing, ...given }, outbox: null, shards: [shardOf({})] }, []);

  it('is given while it knows its share, also where the last announcement had no answer', () => {
    expect(problems({})).toEqual([]);
  });

  it('is refused once it does not know who lives', () => {
    expect(problems({ share: null })).toEqual(['announced itself 2 times without an answer, and takes no shard over']);
  });
});

describe('the readiness of a relay', () => {
  it.each<[string, Partial<ShardSnapshot>]>([
    ['stands by for another', standby],
    ['leaves a shard to others, and was not told who', { ...standby, state: 'elsewhere', sinceLeaseAnswerMs: null }],
    ['follows an idle stream', { uncoveredForMs: 9_000 }],
    ['sweeps and gets ahead', { state: 'sweeping', rowsInMemory: 5, unmarkedForMs: 100 }],
    ['sweeps long, with nothing read from the stream', { state: 'sweeping', sinceReadMs: null }],
    ['was paused by an operator', { paused: { all: true, topics: [] } }],
    ['has no room to read, and marks', { sinceReadMs: 500_000, rowsInMemory: 5, unmarkedForMs: 200 }],
    ['has begun to follow', { sinceReadMs: null }],
    ['sweeps, and may not save yet', { state: 'sweeping', uncoveredForMs: 500_000 }],
  ])('is given while it %s', (_name, shard) => {
    expect(problemsOf(shard)).toEqual([]);
  });

  it.each<[string, Partial<ShardSnapshot>, string]>([
    [
      'waits for relays with other shards',
      { ...standby, otherMap: 'shard all is held by a' },
      'shard all waits while another division of the slots is served: shard all is held by a',
    ],
    ['starts', { state: 'starting' }, 'shard all is starting'],
    ['lost touch with its lease', { state: 'suspended' }, 'shard all could not renew its lease and sends nothing'],
    ['drains', { state: 'draining' }, 'shard all is draining'],
    ['cannot send to a topic', { topicsClosed: ['orders-events'] }, 'topic orders-events cannot be sent to'],
    [
      'stands by and has not been answered',
      { ...standby, sinceLeaseAnswerMs: null },
      'shard all has not been told yet who holds its lease',
    ],
    [
      'stands by and the database fails',
      { ...standby, leaseFailuresInARow: 2 },
      'shard all asked 2 times for its lease without an answer',
    ],
    [
      'stands by and asks no more',
      { ...standby, sinceLeaseAnswerMs: 40_000 },
      'shard all has not been told for 40 s who holds its lease',
    ],
    [
      'sweeps without getting ahead',
      { state: 'sweeping', sinceAheadMs: 31_000 },
      'shard all is sweeping and got no further for 31 s',
    ],
    ['reads nothing', { sinceReadMs: 31_000 }, 'shard all has read nothing from the change stream for 31 s'],
    [
      'has never read',
      { sinceReadMs: null, sinceAheadMs: 31_000 },
      'shard all has read nothing from the change stream for 31 s',
    ],
    [
      'polls and reads nothing',
      { state: 'polling', sinceReadMs: 31_000 },
      'shard all has read nothing from the outbox for 31 s',
    ],
    [
      'marks nothing of what it holds',
      { unmarkedForMs: 45_000, rowsInMemory: 7 },
      'shard all holds 7 rows and has marked none for 45 s',
    ],
    [
      'sweeps, and marks nothing of what it holds',
      { state: 'sweeping', unmarkedForMs: 45_000, rowsInMemory: 7 },
      'shard all holds 7 rows and has marked none for 45 s',
    ],
    [
      'cannot move its checkpoint while the stream moves',
      { uncoveredForMs: 61_000 },
      'shard all reads on, and its checkpoint has not moved for 61 s',
    ],
  ])('is refused while it %s', (_name, shard, reason) => {
    expect(problemsOf(shard)).toEqual([reason]);
  });

  it('is refused while sends to a topic fail, whatever other topics do', () => {
    const other = { ...failing, topic: 'inventory-events', failuresInARow: 0 };
    expect(problemsOf({}, [other, failing])).toEqual(['the last 3 sends to orders-events failed: timed out']);
  });

  it.each<[string, Partial<ShardSnapshot>, Partial<SendHealth>]>([
    ['the lease is gone', standby, {}],
    ['no send was tried again for long', {}, { sinceLastMs: 61_000 }],
  ])('forgets failed sends when %s', (_name, shard, sends) => {
    expect(problemsOf(shard, [{ ...failing, ...sends }])).toEqual([]);
  });
});
