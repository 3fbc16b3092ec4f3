/** The shapes of what operators see and do: failures, dead letters, groups, retention. */
import { z } from 'zod';
import { action, count, event, failure, groupStanding, moment, pause, shortFailure, verdict } from './shape-parts.js';

export const outboxRows = z.object({
  rows: z.array(event.extend({ attempts: count, nextRetryAt: moment.nullable(), lastError: z.string().nullable() })),
});

const message = z.object({
  messageId: z.string(),
  topic: z.string(),
  form: z.enum(['original', 'tombstone']),
  digest: z.string(),
  envelope: z.looseObject({ eventId: z.string(), eventType: z.string(), data: z.unknown() }),
});

const deadLetter = z.object({
  eventId: z.string(),
  eventType: z.string(),
  aggregate: z.string(),
  version: count,
  revision: count.describe('What a decision is made upon: it counts only while the row still has it.'),
  attempts: count,
  failure: z.union([shortFailure, z.null()]),
  firstFailedAt: moment.nullable(),
  lastFailedAt: moment.nullable(),
  parkedAt: moment,
  message,
  edited: z.union([
    z.object({ original: message, edit: z.object({ by: z.string(), reason: z.string(), at: moment }) }),
    z.null(),
  ]),
});

export const deadLetters = z.object({ deadLetters: z.array(deadLetter) });
export const oneDeadLetter = z.object({ deadLetter, waitingBehind: count, actions: z.array(action) });

const notDone = z.object({ kind: z.enum(['changed', 'gone', 'not-next']), position: count.optional() }).loose();
export const bulk = z.union([
  z.object({ kind: z.literal('planned'), deadLetters: z.array(deadLetter) }),
  z.object({
    kind: z.literal('acted'),
    bulk: z.string().describe('Names the actions in their records.'),
    results: z
      .array(
        z.object({
          eventId: z.string(),
          result: z.union([z.object({ kind: z.literal('done'), verdict: z.string().optional() }), notDone]),
        }),
      )
      .describe('Each for itself: what was not done has changed meanwhile; look at it again.'),
  }),
]);

export const setAside = z.object({
  setAside: z.array(
    z.object({
      id: z.string(),
      topic: z.string(),
      messageId: z.string(),
      body: z.string().describe('As it came, in base64.'),
      properties: z.record(z.string(), z.string()),
      failure,
      count: count.describe('How often it came: what a dismissal is made upon.'),
      firstFailedAt: moment,
      lastFailedAt: moment,
    }),
  ),
});

export const done = z.object({
  kind: z.literal('done'),
  verdict: z.string().optional().describe('Of a skip: what was written for the version.'),
  revision: count.optional().describe('Of an outbox row: the one that it has now.'),
});

export const paused = z.union([
  z.object({ kind: z.literal('done') }),
  z.object({ kind: z.literal('unchanged'), standing: z.union([pause, z.null()]) }),
]);

export const groups = z.object({ groups: z.array(groupStanding) });

const selected = z.union([
  z.object({ eventId: z.string(), aggregate: z.string(), version: count, publishedAt: moment }),
  z.null(),
]);
export const plan = z.object({ events: count, aggregates: count, first: selected, last: selected, missing: count });

export const replayed = z.object({
  events: count,
  aggregates: count,
  parked: count.describe('To be run by the group’s workers.'),
  skipped: count,
  known: count,
  conflicts: count,
});

export const removed = z.object({
  unregistered: z.array(z.string()).describe('Producers that knew the group.'),
  deleted: z.record(z.string(), count).describe('Documents of the group, by what they are.'),
});

const held = z.looseObject({ topic: z.string(), oldestMs: z.number(), because: verdict });
export const retained = z.object({
  kind: z.enum(['completed', 'interrupted']),
  rows: count,
  bytes: count,
  batches: count,
  dropped: z.array(z.object({ name: z.string(), rows: count })),
  held: z.array(held).describe('Why rows that are old enough stay.'),
  heldArchives: z.array(held),
});
