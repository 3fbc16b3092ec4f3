import { eventId, type Clock, type EventId, type Random } from '@nightporter/protocol';
import { uuidv7 } from 'uuidv7';

/** Time, chance and ids, so that tests can hold them still. */
export interface OutboxWorld {
  readonly clock: Clock;
  readonly random: Random;
  /** Date of the producer's clock, for occurredAt. */
  readonly today: () => Date;
  readonly newEventId: () => EventId;
}

export const systemWorld: OutboxWorld = {
  clock: {
    now: () => performance.now(),
    after: (delayMs, run) => {
      const timer = setTimeout(run, delayMs);
      return () => {
        clearTimeout(timer);
      };
    },
  },
  random: Math.random,
  today: () => new Date(),
  newEventId: () => eventId(uuidv7()),
};
