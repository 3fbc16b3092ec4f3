/**
 * A worker for the proofs: its effect is one entry in a journal that would show a double. Events tell it to fail, to end its process, or
 * to be slow, so that what goes wrong is in the history of the test and not in the program; but for where it is killed while it settles a history.
 */
import { runService } from '@nightporter/runtime';
import { defineConsumer } from '@nightporter/worker';
import { setTimeout as delay } from 'node:timers/promises';
import { killPoints } from './kill-points.js';
import { enterJournal, EXIT_CODE, journalCatalogue, journalCollections, prepareJournal } from './journal.js';

const retryDelayMs = Number(process.env['RETRY_DELAY_MS'] ?? '200');
/**
 * A claim outlives its process, so a test in which processes end wants it short; it is longer than two handlers and four transactions, so that
 * parked events share transactions as they do with the defaults.
 */
const claimMs = Number(process.env['CLAIM_MS'] ?? '90000');
const handlerMs = Math.min(30_000, Math.floor(claimMs / 3));
const transactionMs = Math.min(5_000, Math.floor(claimMs / 13));
const topic = process.env['PRODUCER_TOPIC'] ?? 'samples';
const catalogue = journalCatalogue(topic);

await runService(
  defineConsumer(
    {
      name: 'journal-worker',
      description: 'Writes a journal of what it was given.',
      port: 0,
      database: 'journal',
      group: 'journal',
      source: 'journal',
      catalogue,
      subscriptions: [{ producer: 'producer', topic, topicSetting: 'PRODUCER_TOPIC' }],
      tuning: { retryScheduleMs: [retryDelayMs], claimMs, handlerMs, transactionMs },
      prepare: ({ database }) => prepareJournal(database),
      handlers: ({ database }) => ({
        SampleHappened: async ({ event, session, attempt }) => {
          const { failures = 0, exits = false, offends = false, takesMs = 0 } = event.data.orders;
          await enterJournal(database, { event, session, attempt });
          if (takesMs > 0) await delay(takesMs);
          if (exits) process.exit(EXIT_CODE);
          if (offends)
            await journalCollections(database).counts.insertOne({ _id: event.aggregateId, entries: 0 }, { session });
          if (attempt <= failures) throw new Error(`told to fail in its first ${failures} attempts`);
        },
      }),
    },
    { portsOf: killPoints(process.env) },
  ),
);
