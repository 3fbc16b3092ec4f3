import type { ConsumerEvent, ConsumerObserver, IncomingEvent } from '@nightporter/consumer';
import { traceIdOf, type Clock } from '@nightporter/protocol';
import type { Logger } from '@nightporter/runtime';
import type { SweepHealth } from './sweep-health.js';

/** An outage repeats itself at least this often while it lasts (the engine's longest pause is 10 s); after it, silence is health. */
const OUTAGE_MS = 15_000;

/** Writes what the consumer tells into the log, and keeps what readiness asks for. */
export function createConsumerObserver(
  logger: Logger,
  clock: Clock,
  sweep?: Pick<SweepHealth, 'heard'>,
): { observe: ConsumerObserver; outage: () => string | null } {
  let last: { readonly at: number; readonly reason: string } | null = null;
  return {
    observe: (event) => {
      if (event.kind === 'database-unavailable' || event.kind === 'broker-unavailable') {
        last = { at: clock.now(), reason: `${event.kind} (${event.operation})` };
      }
      if (event.kind === 'acknowledged') last = null;
      sweep?.heard(event);
      write(logger, event);
    },
    outage: () => (last !== null && clock.now() - last.at < OUTAGE_MS ? last.reason : null),
  };
}

function write(logger: Logger, event: ConsumerEvent): void {
  switch (event.kind) {
    case 'settled':
      logger.debug({ ...nameOf(event.event), outcome: event.outcome, attempt: event.attempt }, 'settled');
      return;
    case 'duplicate':
      logger.debug(nameOf(event.event), 'duplicate');
      return;
    case 'parked':
      logger[event.state === 'dead' ? 'error' : 'info'](
        { ...nameOf(event.event), state: event.state, failure: event.failure },
        'parked',
      );
      return;
    case 'set-aside':
      logger.error(setAsideLine(event), 'message set aside: it has no place in any sequence');
      return;
    case 'woken':
      if (event.count > 0) logger.info({ count: event.count }, 'woke parked events that nobody had woken');
      return;
    case 'swept':
      if (event.missing > 0) {
        logger.warn(
          { seen: event.seen, missing: event.missing },
          'published, and neither settled nor parked: taken from the ledger',
        );
      }
      return;
    case 'broker-dead-letter':
      logger.error(
        { messageId: event.messageId, topic: event.topic, ...(event.event === null ? {} : nameOf(event.event)) },
        'given up by the broker: taken from its dead letters',
      );
      return;
    case 'broker-dead-letters-unavailable':
      logger.warn({ err: event.error }, 'dead letters of the broker unavailable; trying again');
      return;
    case 'dead-letter-copied':
      logger.info(nameOf(event.event), 'dead letter copied');
      return;
    case 'dead-letter-not-copied':
      logger.warn({ err: event.error }, 'dead letter not copied; trying again');
      return;
    case 'bootstrapping': {
      const { about, perSecond, topics, walked, watermarkMs } = event;
      logger.info(
        { topics, walked, about, perSecond, watermark: new Date(watermarkMs).toISOString() },
        'catching up with the history',
      );
      return;
    }
    case 'bootstrap-ended': {
      const { how, topics, tookMs, walked } = event;
      const message = how === 'live' ? 'caught up with the history' : 'another worker catches up with the history';
      logger.info({ topics, walked, tookMs }, message);
      return;
    }
    case 'version-unavailable':
      logger.warn(
        { aggregate: event.aggregate, aggregateVersion: event.version, reason: event.reason },
        'parked events wait for a version that the ledger does not give',
      );
      return;
    case 'unregistered':
      logger.error({}, 'the group is not registered with its producer: nothing is swept, and nothing kept for it');
      return;
    case 'ledger-unavailable':
      logger.warn({ operation: event.operation, err: event.error }, 'ledger unavailable; trying again');
      return;
    case 'filter-unavailable':
      logger.warn({ operation: event.operation, err: event.error }, 'duplicate filter unavailable; doing without it');
      return;
    case 'database-unavailable':
    case 'broker-unavailable':
      logger.warn({ operation: event.operation, err: event.error }, event.kind.replace('-', ' '));
      return;
    case 'received':
    case 'conflict':
    case 'filtered':
    case 'acknowledged':
      return;
  }
}

/** What is not known of the message is left out. */
function setAsideLine(event: ConsumerEvent & { kind: 'set-aside' }): Record<string, unknown> {
  const { aggregate, envelope, failure, id, messageId, topic, traceparent } = event;
  const { aggregateVersion, eventId, eventType } = envelope ?? {};
  return {
    ...(envelope === null ? {} : { eventId, eventType, aggregateVersion }),
    ...(aggregate === null ? {} : { aggregate }),
    id,
    messageId,
    topic,
    failure,
    ...traceIdOf({ traceparent }),
  };
}

function nameOf({ envelope, aggregate, messageId }: IncomingEvent): Record<string, unknown> {
  return {
    eventId: envelope.eventId,
    eventType: envelope.eventType,
    aggregate,
    aggregateVersion: envelope.aggregateVersion,
    messageId,
    ...traceIdOf(envelope),
  };
}
