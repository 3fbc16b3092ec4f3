/** The shapes of answers to questions. */
import { z } from 'zod';
import { action, count, event, groupStanding, moment, notKnown, pause, verdict } from './shape-parts.js';

const mend = z
  .string()
  .nullable()
  .describe(
    'The command, or the deed, that mends it or tells more; null where nothing is to be done, or somebody has to judge first.',
  );

const step = z.object({
  at: moment.nullable(),
  group: z.string().nullable(),
  kind: z.enum([
    'created',
    'captured',
    'published',
    'failed',
    'received',
    'settled',
    'repeated',
    'parked',
    'set-aside',
    'operator',
  ]),
  text: z.string(),
});

const groupTimeline = z.object({
  group: z.string(),
  database: z.string().nullable(),
  isRegistered: z.boolean(),
  verdict: z.union([verdict, z.null()]),
  mend,
  attempts: count,
  repeats: count,
  receivedAt: moment.nullable(),
  settledAt: moment.nullable(),
  appliedDigest: z.string().nullable(),
  actions: z.array(action),
});

export const timeline = z.union([
  z.object({
    kind: z.literal('known'),
    event,
    payload: z.unknown().describe('Any JSON.'),
    relay: verdict,
    mend,
    publication: z.union([
      z.object({ topic: z.string(), messageId: z.string(), relay: z.string(), epoch: count, capturedAt: moment }),
      z.null(),
    ]),
    actions: z.array(action),
    groups: z.array(groupTimeline),
    steps: z.array(step),
    notKnown,
  }),
  z.object({
    kind: z.literal('only-in-groups'),
    eventId: z.string(),
    groups: z.array(groupTimeline),
    steps: z.array(step),
    notKnown,
  }),
]);

export const page = z.object({
  events: z.array(event),
  cursor: z.string().nullable().describe('Pass it to get the next page; null on the last one.'),
  notKnown,
});

export const history = z.object({
  aggregate: z.string(),
  producer: z.string().nullable(),
  headVersion: count,
  positions: z.record(z.string(), z.union([z.object({ version: count, state: z.string() }), z.null()])),
  entries: z.array(
    z.object({ version: count, event: z.union([event, z.null()]), groups: z.record(z.string(), z.string()) }),
  ),
  next: count.nullable(),
  notKnown,
});

const unsettled = z.object({ rows: count, oldestAgeMs: z.number().nullable() });

export const relay = z.object({
  database: z.string(),
  leases: z.array(
    z.object({ shard: z.string(), owner: z.string(), epoch: count, isAlive: z.boolean(), expiresAt: moment }),
  ),
  checkpoints: z.array(
    z.object({ shard: z.string(), epoch: count, seq: count, hasToken: z.boolean(), ageMs: z.number() }),
  ),
  instances: z.array(z.object({ owner: z.string(), isAlive: z.boolean() })),
  pauses: z.array(pause),
  repairs: z.array(
    z.object({
      _id: z.string(),
      shard: z.string(),
      epoch: count,
      owner: z.string(),
      reason: z.string(),
      rows: count,
      at: moment,
    }),
  ),
});

export const status = z.object({
  at: moment,
  engine: z.object({ engine: z.string(), version: z.string() }),
  outboxes: z.array(
    z.object({
      producer: z.string(),
      unsettled: z.object({ PENDING: unsettled, PROCESSING: unsettled, FAILED: unsettled, DEAD: unsettled }),
      isCapped: z.boolean(),
      newestPublishedAt: moment.nullable(),
    }),
  ),
  groups: z.array(groupStanding),
  relay: z.union([relay, z.null()]),
  notKnown,
});

export const audit = z.object({
  kind: z.enum(['completed', 'interrupted']),
  isFull: z.boolean(),
  startedAt: moment,
  elapsedMs: z.number(),
  producers: z.array(
    z.object({
      producer: z.string(),
      committed: count,
      unpublished: count,
      present: count.nullable(),
      deleted: count.nullable(),
    }),
  ),
  groups: z.array(
    z.object({
      group: z.string(),
      producer: z.string(),
      comparedTo: moment,
      published: count,
      publishedInThisRun: count,
      settled: count,
      beforeStart: count,
      expired: count,
      inFlight: count,
      different: count,
      isMarked: z.boolean(),
    }),
  ),
  differences: z.array(
    z.object({
      kind: z.string(),
      producer: z.string(),
      group: z.string().nullable(),
      eventId: z.string().nullable(),
      aggregate: z.string().nullable(),
      version: count.nullable(),
      text: z.string(),
      mend,
    }),
  ),
  differencesTotal: count,
  notes: z.array(z.string()),
});

const figure = z.number().nullable();
const sloWindow = z.enum(['5m', '30m', '1h', '6h', '24h', '3d']);

export const slo = z.object({
  objective: z.number(),
  thresholdMs: z.number(),
  groups: z.array(
    z.object({
      group: z.string(),
      verdict: z.union([
        z.object({ kind: z.enum(['page', 'ticket']), long: sloWindow, short: sloWindow, factor: z.number() }),
        z.object({ kind: z.enum(['ok', 'nothing-settled']) }),
      ]),
      windows: z.array(
        z.object({
          window: sloWindow,
          settled: count,
          within: count,
          share: figure,
          p50Ms: figure,
          p99Ms: figure,
          budgetLeft: figure.describe('Part of what may be late in this window that is left; negative when more was.'),
          burnRate: figure.describe('Late events as a multiple of those that may be.'),
          notKnown: count.describe('Settled too, but when they were committed could not be found out.'),
          isWhole: z.boolean().describe('Whether all of the window was read; else the figures are of its later part.'),
        }),
      ),
      sample: z.object({ records: count, completeFrom: moment.nullable() }),
      notes: z.array(z.string()),
    }),
  ),
  notKnown,
});

export const findings = z.object({
  findings: z.array(
    z.object({
      severity: z.enum(['error', 'warning', 'note']),
      check: z.string(),
      text: z.string(),
      mend: z.string().nullable().describe('What mends it; null where nothing has to be mended.'),
    }),
  ),
});

export const actions = z.object({ actions: z.array(action.extend({ database: z.string() })) });
