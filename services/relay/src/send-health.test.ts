import type { OutboxRow } from '@nightporter/contracts';
import type { Clock } from '@nightporter/protocol';
import { PublishError, type PublishFailure, type RelayEvent } from '@nightporter/relay';
import { beforeEach, describe, expect, it } from 'vitest';
import { createSendHealth } from './send-health.js';

let nowMs = 0;
const clock = { now: () => nowMs } as Clock;

beforeEach(() => {
  nowMs = 1_000;
});

function failed(topic: string, failure: PublishFailure = 'transient'): RelayEvent {
  const error = new PublishError({ failure, answered: true, message: `no ${topic}` });
  return { kind: 'send-failed', row: { topic } as OutboxRow, error, retryInMs: 50 };
}

function published(topic: string): RelayEvent {
  return { kind: 'published', row: { topic } as OutboxRow, messageId: 'm', sendMs: 1 };
}

const lost = { kind: 'lease-lost', shard: 'all', epoch: 1, reason: 'lost' } as unknown as RelayEvent;

describe('what is known of failed sends', () => {
  it.each<[string, readonly RelayEvent[], readonly string[]]>([
    ['counts them by topic', [failed('a'), failed('b'), failed('a')], ['a 2', 'b 1']],
    ['forgets those of a topic that has taken one', [failed('a'), failed('b'), published('a')], ['b 1']],
    ['knows nothing of messages that are refused for what they are', [failed('a', 'permanent')], []],
    ['forgets all with the lease', [failed('a'), lost], []],
  ])('%s', (_name, events, expected) => {
    const health = createSendHealth(clock);
    for (const event of events) health.observe(event);
    expect(health.failing().map(({ topic, failuresInARow }) => `${topic} ${failuresInARow}`)).toEqual(expected);
  });

  it('tells how long ago the last was, and what it said', () => {
    const health = createSendHealth(clock);
    health.observe(failed('a'));
    nowMs += 700;
    expect(health.failing()).toEqual([{ topic: 'a', failuresInARow: 1, sinceLastMs: 700, lastError: 'no a' }]);
  });

  it('is bounded', () => {
    const health = createSendHealth(clock);
    for (let topic = 0; topic < 150; topic += 1) health.observe(failed(`topic-${topic}`));
    expect(health.failing()).toHaveLength(100);
  });
});
