import type { MongoClient } from 'mongodb';
import { createDatabaseClock } from './database-clock.js';

/** Tells how long ago a moment of the database's clock was, as soon as that is known; not at all where the database does not answer. */
export type Ages = (momentMs: number, told: (ageMs: number) => void) => void;

/** For figures: nobody waits for them, and whoever observes may not wait. */
export function createAges(client: MongoClient): Ages {
  const clock = createDatabaseClock(client);
  let asked: Promise<Date> | undefined;
  return (momentMs, told) => {
    // Those that ask in one go share one answer.
    asked ??= clock.estimate().finally(() => {
      asked = undefined;
    });
    asked.then(
      (now) => {
        told(Math.max(0, now.getTime() - momentMs));
      },
      () => undefined,
    );
  };
}
