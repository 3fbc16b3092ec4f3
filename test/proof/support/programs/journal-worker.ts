/**
 * A worker for the proofs: its effect is one entry in a journal that would show a double. Events tell it to fail, to end its process, or
 * to be slow, so that what goes wrong is in the history of the test and not in the program.
 */
import { runService } from '@nightporter/runtime';
import { defineConsumer } from '@nightporter/worker';
import { setTimeout as delay } from 'node:timers/promises';
import { EXIT_CODE, journalCatalogue, journalCollections } from './journal.js';

const retryDelayMs = Number(process.env['RETRY_DELAY_MS'] ?? '200');
/** A claim outlives its process, so a test in which processes end wants it short; a handler must be shorter. */
const claimMs = Number(process.env['CLAIM_MS'] ?? '90000');
const handlerMs = Math.min(30_000, claimMs - 1_000);
const topic = process.env['PRODUCER_TOPIC'] ?? 'samples';
const catalogue = journalCatalogue(topic);

await runService(
  defineConsumer({
    name: 'journal-worker',
    description: 'Writes a journal of what it was given.',
    port: 0,
    database: 'journal',
    group: 'journal',
    source: 'journal',
    catalogue,
    subscriptions: [{ producer: 'producer', topic, topicSetting: 'PRODUCER_TOPIC' }],
    tuning: { retryScheduleMs: [retryDelayMs], claimMs, handlerMs },
    prepare: async ({ database }) => {
      const { journal, counts } = journalCollections(database);
      // Collections that a transaction would have to create first would make concurrent ones conflict.
      await journal.createIndex({ aggregateId: 1, sequence: 1 });
      await counts.createIndex({ entries: 1 });
    },
    handlers: ({ database }) => ({
      SampleHappened: async ({ event, session, attempt }) => {
        const { journal, counts } = journalCollections(database);
        const { failures = 0, exits = false, offends = false, takesMs = 0 } = event.data.orders;
        const { eventId, aggregateId, aggregateVersion: version } = event;
        const counted = await counts.findOneAndUpdate(
          { _id: aggregateId },
          { $inc: { entries: 1 } },
          { session, upsert: true, returnDocument: 'after' },
        );
        const sequence = counted?.entries ?? 0;
        const entry = { eventId, aggregateId, version, sequence, attempt, processId: process.pid };
        await journal.insertOne(entry, { session });
        if (takesMs > 0) await delay(takesMs);
        if (exits) process.exit(EXIT_CODE);
        if (offends) await counts.insertOne({ _id: aggregateId, entries: 0 }, { session });
        if (attempt <= failures) throw new Error(`told to fail in its first ${failures} attempts`);
      },
    }),
  }),
);
