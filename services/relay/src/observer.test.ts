import type { OutboxRow } from '@nightporter/contracts';
import { PublishError, type PublishFailure, type RelayEvent } from '@nightporter/relay';
import { createLogger, systemClock } from '@nightporter/runtime';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { createRelayObserver, type RelayLog } from './observer.js';

let lines: string[];
let log: RelayLog;

beforeEach(() => {
  vi.useFakeTimers();
  lines = [];
  const write = (line: string): void => {
    const { level, msg, topic, operation } = JSON.parse(line) as Record<string, string>;
    lines.push([level, msg, topic ?? operation].join(' '));
  };
  log = createRelayObserver(createLogger({ name: 'relay', level: 'info', destination: { write } }), systemClock);
});
afterEach(() => {
  log.close();
  expect(vi.getTimerCount()).toBe(0);
  vi.useRealTimers();
});

const row = { topic: 'orders-events', source: 'orders', aggregateType: 'order', aggregateId: '1' } as OutboxRow;

function failed(failure: PublishFailure): RelayEvent {
  const error = new PublishError({ failure, answered: true, message: 'connection refused' });
  return { kind: 'send-failed', row, error, retryInMs: 50 };
}

describe('the log of a relay', () => {
  it('stays short while the broker is down, and says when it is back', async () => {
    for (let failure = 0; failure < 3_000; failure += 1) {
      log.observe(failed('transient'));
      await vi.advanceTimersByTimeAsync(10);
    }
    log.observe({ kind: 'published', row, messageId: 'm', sendMs: 1 });
    await vi.advanceTimersByTimeAsync(2_000);
    expect(lines).toEqual([
      'warn send failed orders-events',
      'warn sends go on failing orders-events',
      'warn sends go on failing orders-events',
      'warn sends go on failing orders-events',
      'info sends succeed again orders-events',
    ]);
  });

  it('stays short while the database is down', async () => {
    for (let failure = 0; failure < 1_500; failure += 1) {
      log.observe({ kind: 'database-unavailable', operation: 'marker.mark', error: new Error('no primary') });
      await vi.advanceTimersByTimeAsync(10);
    }
    await vi.advanceTimersByTimeAsync(20_000);
    expect(lines).toEqual([
      'warn database unavailable marker.mark',
      'warn database still unavailable marker.mark',
      'warn database still unavailable marker.mark',
      'info database calls fail no more marker.mark',
    ]);
  });

  it('tells an event that is refused for good apart from a broker that is down', () => {
    log.observe(failed('transient'));
    log.observe(failed('permanent'));
    expect(lines).toEqual(['warn send failed orders-events', 'warn send failed orders-events']);
  });

  it('tells of every event that is dead', () => {
    log.observe({ kind: 'dead', row, error: 'too large' });
    log.observe({ kind: 'dead', row, error: 'too large' });
    expect(lines).toHaveLength(2);
  });
});
