import type { DuplicateFilter } from '@nightporter/consumer';
import { NightporterError, type EventId } from '@nightporter/protocol';
import { createClient } from 'redis';

export interface RedisFilterOptions {
  /** redis://… or rediss://…, with credentials where Redis wants them. */
  readonly url: string;
  readonly group: string;
  /** Stands before every key. Default `nightporter`. */
  readonly prefix?: string;
  /** How long an event is remembered. Default one day: most repeats come within minutes. */
  readonly rememberMs?: number;
  /** How long opening a connection may take. Default 2,000 ms. */
  readonly connectMs?: number;
}

export interface RedisFilter extends DuplicateFilter {
  /** Drops the connection. */
  close(): Promise<void>;
}

const REMEMBER_MS = 24 * 60 * 60 * 1_000;
const CONNECT_MS = 2_000;
const RECONNECT_MS_MAX = 5_000;

/**
 * A filter that all workers of a group share, so that a worker knows what one that was killed had settled. One key per event, which Redis
 * lets expire. It resolves at once, also where there is no Redis: calls then reject, at once too, until it can be reached,
 * and the worker does without it.
 */
export function createRedisFilter(options: RedisFilterOptions): RedisFilter {
  const { connectMs = CONNECT_MS, group, prefix = 'nightporter', rememberMs = REMEMBER_MS, url } = options;
  assertPositive({ connectMs, rememberMs });
  const client = clientOf(url, connectMs);
  const toldByCalls = (): void => undefined;
  // Without a listener, a lost connection would end the process.
  client.on('error', toldByCalls);
  client.connect().catch(toldByCalls);
  const keyOf = (event: EventId): string => `${prefix}:${group}:${event}`;
  return {
    async seen(events) {
      if (events.length === 0) return new Set();
      const found = await client.mGet(events.map(keyOf));
      return new Set(events.filter((_event, index) => found[index] !== null && found[index] !== undefined));
    },
    async remember(events) {
      // Commands that are issued together travel together.
      await Promise.all(
        events.map((event) => client.set(keyOf(event), '1', { expiration: { type: 'PX', value: rememberMs } })),
      );
    },
    close() {
      client.destroy();
      return Promise.resolve();
    },
  };
}

function clientOf(url: string, connectMs: number) {
  try {
    return createClient({
      url,
      // A hint that waits for Redis to come back is worth nothing.
      disableOfflineQueue: true,
      socket: {
        connectTimeout: connectMs,
        reconnectStrategy: (attempts) => Math.min(50 * 2 ** attempts, RECONNECT_MS_MAX),
      },
    });
  } catch (cause) {
    // The URL may hold a password, so it is not repeated.
    const message = `The url of a Redis filter is refused: ${cause instanceof Error ? cause.message : String(cause)}; accepted: redis:// or rediss://.`;
    throw new NightporterError('NP_CONFIG_INVALID', message, { cause });
  }
}

function assertPositive(durations: Readonly<Record<string, number>>): void {
  for (const [name, value] of Object.entries(durations)) {
    if (Number.isSafeInteger(value) && value > 0) continue;
    throw new NightporterError(
      'NP_CONFIG_INVALID',
      `${name} of a Redis filter is ${value}; accepted: an integer of 1 or more.`,
    );
  }
}
