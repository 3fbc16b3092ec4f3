import type { ShardSnapshot } from '@nightporter/relay';
import { describe, expect, it } from 'vitest';
import { relayProblems } from './health.js';

const calm = { failuresInARow: 0, lastError: null };

function problemsOf(shard: Partial<ShardSnapshot>): readonly string[] {
  const healthy = {
    shard: 'all',
    state: 'following',
    topicsClosed: [],
    paused: { all: false, topics: [] },
    rowsInMemory: 0,
    sinceReadMs: 10,
    sinceMarkMs: 10,
  };
  return relayProblems({ owner: 'me', shards: [{ ...healthy, ...shard } as ShardSnapshot] }, calm);
}

describe('the readiness of a relay', () => {
  it.each<[string, Partial<ShardSnapshot>]>([
    ['stands by for another', { state: 'standby', sinceReadMs: null, sinceMarkMs: null }],
    ['follows an idle stream', { sinceMarkMs: 500_000 }],
    ['sweeps', { state: 'sweeping', rowsInMemory: 5 }],
    ['was paused by an operator', { paused: { all: true, topics: [] }, sinceMarkMs: 500_000 }],
    ['has no room to read, and marks', { sinceReadMs: 500_000, rowsInMemory: 5 }],
    ['has never marked anything', { sinceMarkMs: null, rowsInMemory: 5 }],
  ])('is given while it %s', (_name, shard) => {
    expect(problemsOf(shard)).toEqual([]);
  });

  it.each<[string, Partial<ShardSnapshot>, string]>([
    ['starts', { state: 'starting' }, 'shard all is starting'],
    ['lost touch with its lease', { state: 'suspended' }, 'shard all could not renew its lease and sends nothing'],
    ['drains', { state: 'draining' }, 'shard all is draining'],
    ['cannot send to a topic', { topicsClosed: ['orders-events'] }, 'topic orders-events cannot be sent to'],
    ['reads nothing', { sinceReadMs: 31_000 }, 'shard all has read nothing from the change stream for 31 s'],
    [
      'polls and reads nothing',
      { state: 'polling', sinceReadMs: 31_000 },
      'shard all has read nothing from the outbox for 31 s',
    ],
    [
      'marks nothing of what it holds',
      { sinceMarkMs: 45_000, rowsInMemory: 7 },
      'shard all holds 7 rows and has marked none for 45 s',
    ],
  ])('is refused while it %s', (_name, shard, reason) => {
    expect(problemsOf(shard)).toEqual([reason]);
  });

  it('is refused while sends fail', () => {
    expect(relayProblems({ owner: 'me', shards: [] }, { failuresInARow: 3, lastError: 'timed out' })).toEqual([
      'the last 3 sends failed: timed out',
    ]);
  });
});
