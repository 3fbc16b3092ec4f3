import { aggregateKey, traceIdOf, type Clock } from '@nightporter/protocol';
import type { OutboxRow } from '@nightporter/contracts';
import type { PublishFailure, RelayEvent, RelayObserver } from '@nightporter/relay';
import type { Logger } from '@nightporter/runtime';
import { FailureLog, type FailureLines } from './failure-log.js';
import type { SendHealth } from './health.js';
import { createSendHealth } from './send-health.js';

export interface RelayLog {
  readonly observe: RelayObserver;
  readonly sends: () => readonly SendHealth[];
  /** Leaves no timer behind. */
  readonly close: () => void;
}

/** Writes what the relay tells into the log, failures that repeat in few lines, and keeps what readiness asks for. */
export function createRelayObserver(logger: Logger, clock: Clock): RelayLog {
  const health = createSendHealth(clock);
  const sends = new FailureLog<FailedSend>(clock, sendLines(logger));
  const database = new FailureLog<FailedCall>(clock, databaseLines(logger));
  return {
    observe: (event) => {
      health.observe(event);
      if (event.kind === 'send-failed') {
        sends.failed(sendKey(event.row, event.error.failure), event);
        return;
      }
      if (event.kind === 'database-unavailable') {
        database.failed(event.operation, event);
        return;
      }
      if (event.kind === 'lease-lost') sends.forgetAll();
      if (event.kind === 'published') {
        sends.succeeded(sendKey(event.row, 'transient'));
        sends.succeeded(sendKey(event.row, 'topic'));
      }
      write(logger, event);
    },
    sends: health.failing,
    close: () => {
      sends.forgetAll();
      database.forgetAll();
    },
  };
}

type FailedSend = Extract<RelayEvent, { kind: 'send-failed' }>;
type FailedCall = Extract<RelayEvent, { kind: 'database-unavailable' }>;

function sendKey({ topic }: OutboxRow, failure: PublishFailure): string {
  return `${failure} ${topic}`;
}

function sendLines(logger: Logger): FailureLines<FailedSend> {
  const about = ({ row, error }: FailedSend) => ({ topic: row.topic, failure: error.failure, reason: error.message });
  return {
    began: (event) => {
      const { error, retryInMs } = event;
      logger.warn({ ...nameOf(event.row), ...about(event), answered: error.answered, retryInMs }, 'send failed');
    },
    goesOn: (event, tally) => {
      logger.warn({ ...about(event), ...tally }, 'sends go on failing');
    },
    ended: (event, { failuresInAll, forMs }, isProven) => {
      const { topic, failure } = about(event);
      if (isProven) logger.info({ topic, failure, failuresInAll, forMs }, 'sends succeed again');
    },
  };
}

function databaseLines(logger: Logger): FailureLines<FailedCall> {
  return {
    began: ({ operation, error }) => {
      logger.warn({ operation, err: error }, 'database unavailable');
    },
    goesOn: ({ operation, error }, tally) => {
      logger.warn({ operation, reason: String(error), ...tally }, 'database still unavailable');
    },
    ended: ({ operation }, { failuresInAll, forMs }) => {
      logger.info({ operation, failuresInAll, forMs }, 'database calls fail no more');
    },
  };
}

function write(logger: Logger, event: Exclude<RelayEvent, FailedSend | FailedCall>): void {
  switch (event.kind) {
    case 'lease-acquired':
      logger.info({ shard: event.shard, epoch: event.epoch }, 'lease acquired');
      return;
    case 'lease-lost':
      logger.warn({ shard: event.shard, epoch: event.epoch, reason: event.reason }, 'lease lost');
      return;
    case 'share-changed':
      logger.info({ instances: event.instances, share: event.share }, 'share of the shards changed');
      return;
    case 'shard-given-back':
      logger.info({ shard: event.shard }, 'shard given back; other instances have less than their share');
      return;
    case 'other-shard-map':
      logger.warn({ reason: event.reason }, 'another division of the slots is served; waiting');
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
    ...traceIdOf(row.headers),
  };
}
