import { aggregateKey, type Clock } from '@nightporter/protocol';
import type { OutboxRow } from '@nightporter/contracts';
import type { RelayEvent, RelayObserver } from '@nightporter/relay';
import type { Logger } from '@nightporter/runtime';
import type { SendHealth } from './health.js';
import { createSendHealth } from './send-health.js';

/** Writes what the relay tells into the log, and keeps what readiness asks for. */
export function createRelayObserver(
  logger: Logger,
  clock: Clock,
): { observe: RelayObserver; sends: () => readonly SendHealth[] } {
  const sends = createSendHealth(clock);
  return {
    observe: (event) => {
      sends.observe(event);
      write(logger, event);
    },
    sends: sends.failing,
  };
}

function write(logger: Logger, event: RelayEvent): void {
  switch (event.kind) {
    case 'lease-acquired':
      logger.info({ shard: event.shard, epoch: event.epoch }, 'lease acquired');
      return;
    case 'lease-lost':
      logger.warn({ shard: event.shard, epoch: event.epoch, reason: event.reason }, 'lease lost');
      return;
    case 'capture-opened':
      logger.info({ shard: event.shard, resumed: event.resumed }, 'change stream opened');
      return;
    case 'capture-lost':
      logger.warn({ shard: event.shard, err: event.error }, 'change stream lost; the outbox is swept instead');
      return;
    case 'repaired':
      logger.warn({ shard: event.shard, reason: event.reason, rows: event.rows }, 'repaired from the outbox');
      return;
    case 'published':
      logger.debug({ ...nameOf(event.row), messageId: event.messageId, sendMs: event.sendMs }, 'published');
      return;
    case 'send-failed':
      logger.warn(
        {
          ...nameOf(event.row),
          failure: event.error.failure,
          answered: event.error.answered,
          retryInMs: event.retryInMs,
          reason: event.error.message,
        },
        'send failed',
      );
      return;
    case 'claims-taken-back':
      logger.info({ shard: event.shard, rows: event.rows }, 'took back what the relay before had claimed');
      return;
    case 'pause-changed': {
      const { shard, pause } = event;
      const isPaused = pause.all || pause.topics.length > 0;
      logger.warn({ shard, ...pause }, isPaused ? 'paused by an operator' : 'resumed by an operator');
      return;
    }
    case 'dead':
      logger.error({ ...nameOf(event.row), reason: event.error }, 'event is dead: it waits for an operator');
      return;
    case 'database-unavailable':
      logger.warn({ operation: event.operation, err: event.error }, 'database unavailable');
      return;
    case 'marked':
      if (event.missing > 0) logger.warn({ missing: event.missing }, 'marked rows that are no longer there');
      return;
    case 'checkpoint-saved':
      return;
  }
}

function nameOf(row: OutboxRow): Record<string, unknown> {
  return {
    eventId: row.eventId,
    eventType: row.eventType,
    aggregate: aggregateKey(row),
    aggregateVersion: row.aggregateVersion,
    topic: row.topic,
  };
}
