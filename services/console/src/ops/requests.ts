import { wire } from '@nightporter/ledger-http';
import { z } from 'zod';

const LONE_SURROGATE = /\p{Surrogate}/u;

const line = (charactersMax: number) =>
  z
    .string()
    .min(1)
    .max(charactersMax)
    .refine((value) => !LONE_SURROGATE.test(value) && !/\p{Cc}/u.test(value), {
      error: 'must be well-formed and hold no control character',
    });

const whole = (min: number, max: number, fallback: number) =>
  z.coerce.number().int().min(min).max(max).default(fallback);
const moment = z.iso.datetime({ offset: true }).transform((text) => new Date(text));
const names = (charactersMax: number) =>
  z
    .string()
    .transform((text) => text.split(',').map((name) => name.trim()))
    .pipe(z.array(line(charactersMax)).min(1).max(100));
const flag = z.enum(['true', 'false']).transform((text) => text === 'true');

export const eventParams = z.strictObject({ eventId: line(200) });
export const groupParams = z.strictObject({ group: line(120) });
export const deadLetterParams = groupParams.extend({ eventId: line(200) });
export const setAsideParams = groupParams.extend({ id: line(1_000) });

export const searchQuery = z.strictObject({
  producer: line(38).optional(),
  topic: line(127).optional(),
  eventType: line(200).optional(),
  aggregateType: line(200).optional(),
  aggregateId: line(200).optional(),
  status: z.enum(['PENDING', 'PROCESSING', 'PUBLISHED', 'FAILED', 'DEAD']).optional(),
  tenantId: line(1_000).optional(),
  correlationId: line(1_000).optional(),
  causationId: line(1_000).optional(),
  from: moment.optional().describe('Created at or after this moment (RFC 3339).'),
  to: moment.optional().describe('Created before this moment.'),
  limit: whole(1, 200, 50),
  cursor: line(200).optional().describe('The "cursor" of the page before.'),
  timeoutSeconds: whole(1, 600, 10).describe('How long one collection may take.'),
});

export const historyQuery = z.strictObject({
  aggregate: wire.aggregateKey,
  afterVersion: whole(0, Number.MAX_SAFE_INTEGER, 0),
  limit: whole(1, 500, 100),
});

export const limitQuery = z.strictObject({ limit: whole(1, 1_000, 100) });

export const outboxQuery = limitQuery.extend({
  status: z.enum(['PENDING', 'PROCESSING', 'FAILED', 'DEAD']).default('DEAD'),
});

export const deadLetterQuery = limitQuery.extend({
  eventType: line(200).optional(),
  code: line(100).optional(),
  reason: line(1_000).optional().describe('Part of the message of the failure.'),
  aggregate: wire.aggregateKey.optional(),
});

export const doctorQuery = z.strictObject({
  topics: names(127)
    .optional()
    .describe('Topics to look at, by commas; the default is those of the registered groups.'),
  handlerMs: whole(1, 86_400_000, 30_000).describe('The longest that a handler may take, as its worker has it.'),
  transactionMs: whole(1, 86_400_000, 5_000).describe('How long a worker adds to one transaction.'),
});

export const tailQuery = z.strictObject({ eventType: line(200).optional(), topic: line(127).optional() });

export const auditQuery = z.strictObject({
  full: flag.default(false).describe('Reads everything again, instead of what is new since the last audit.'),
  group: names(120).optional().describe('Only these groups, by commas.'),
  producer: names(38).optional().describe('Only these producers, by commas.'),
  graceSeconds: whole(0, 86_400, 60).describe('What happened less long ago may be under way.'),
  lagSeconds: whole(0, 600, 10).describe('What is published less long ago is left to the next audit.'),
  inboxRetentionDays: whole(1, 36_500, 90).describe('How long the groups keep records of their inbox.'),
  limit: whole(1, 1_000_000, 1_000).describe('Differences that are told one by one.'),
});

export const sloQuery = z.strictObject({
  group: line(120).optional(),
  thresholdSeconds: z.coerce
    .number()
    .min(0.001)
    .max(3_600)
    .default(5)
    .describe('From commit to settled; the default is that of SLO_LATENCY_MS.'),
  sample: whole(1, 100_000, 20_000).describe('Records of each inbox that are read at most, the newest.'),
});

/** As the examples of answers have it. */
const EVENT_ID = '019a0000-0000-7000-8000-000000000001';
const ADA = { by: 'ada', reason: 'the product is in the catalogue now' };

/** Who decides, and why: it goes on record with what was done. */
const decision = { by: line(200), reason: line(2_000) };

/** What cannot be undone names once more what it is done to. */
const confirm = line(1_000).describe('The id that is in the path, once more: what this does cannot be undone.');

/** What a body holds is JSON already; a schema that says so refers to itself, which the OpenAPI page does not resolve. */
const anything = z.unknown().refine((value) => value !== undefined, { error: 'is needed' });
const target = { ...decision, revision: z.int().min(0) };

export const decisionBody = z.strictObject(decision).meta({ examples: [ADA] });
export const confirmedBody = z
  .strictObject({ ...decision, confirm })
  .meta({ examples: [{ ...ADA, confirm: EVENT_ID }] });
export const targetBody = z.strictObject(target).meta({ examples: [{ ...ADA, revision: 3 }] });
export const confirmedTargetBody = z
  .strictObject({ ...target, confirm })
  .meta({ examples: [{ ...ADA, revision: 3, confirm: EVENT_ID }] });
export const editBody = z
  .strictObject({ ...target, confirm, data: anything })
  .meta({ examples: [{ ...ADA, revision: 3, confirm: EVENT_ID, data: { orderId: 'o-1', lines: [] } }] });
export const dismissBody = z
  .strictObject({ ...decision, count: z.int().min(1), confirm })
  .meta({ examples: [{ ...ADA, count: 2, confirm: EVENT_ID }] });
const bulk = {
  ...decision,
  filter: z
    .strictObject({
      eventType: line(200).optional(),
      code: line(100).optional(),
      reason: line(1_000).optional().describe('Part of the message of the failure.'),
      aggregate: wire.aggregateKey.optional(),
    })
    .describe('Which dead letters: at least one of these.'),
  limit: z.int().min(1).max(1_000).default(1_000),
  dryRun: z.boolean().default(false).describe('Only tells which they would be; nothing is written.'),
};
const WITHOUT_PRODUCT = { code: 'NP_HANDLER_FAILED', reason: 'no such product' };
export const bulkRetryBody = z
  .strictObject(bulk)
  .meta({ examples: [{ ...ADA, filter: WITHOUT_PRODUCT, limit: 100, dryRun: false }] });
export const bulkSkipBody = z
  .strictObject({
    ...bulk,
    confirm: line(120)
      .optional()
      .describe('The group that is in the path, once more, unless it is a dry run: what this does cannot be undone.'),
  })
  .meta({ examples: [{ ...ADA, filter: WITHOUT_PRODUCT, limit: 100, dryRun: false, confirm: 'inventory' }] });
export const selection = {
  into: z
    .enum(['what-is-missing', 'new-group'])
    .default('what-is-missing')
    .describe(
      'what-is-missing: what the group has neither settled nor parked. new-group: a generation that begins with this.',
    ),
  aggregates: z.array(wire.aggregateKey).min(1).max(1_000).optional(),
  eventTypes: z.array(line(200)).min(1).max(100).optional(),
  publishedFrom: moment.optional().describe('Published at or after this moment (RFC 3339).'),
  publishedBefore: moment.optional(),
  topics: z.array(line(127)).min(1).max(100).optional().describe('Of a group that is new: what it reads.'),
};
/** `example`, since zod leaves the `examples` of what it transforms out of what goes in. */
export const planBody = z.strictObject(selection).meta({ example: { aggregates: ['orders/order/o-1'] } });
export const replayBody = z
  .strictObject({
    ...decision,
    ...selection,
    ratePerSecond: z.int().min(1).max(100_000).optional(),
  })
  .meta({ example: { ...ADA, publishedFrom: '2026-11-30T12:00:00Z', ratePerSecond: 500 } });
export const removalBody = z
  .strictObject({
    ...decision,
    confirm,
    withData: z.boolean().default(false).describe('Whether what the group knows of every event goes too, for good.'),
  })
  .meta({ examples: [{ ...ADA, confirm: 'inventory', withData: false }] });
export const outboxParams = z.strictObject({ producer: line(38) });
export const retentionBody = z
  .strictObject({
    ...decision,
    confirm,
    to: z.enum(['delete', 'collections', 'files']),
    bucket: z.enum(['day', 'month']).default('day'),
    afterHours: z.int().min(0).max(876_000).default(168),
    archiveDays: z
      .int()
      .min(0)
      .max(36_500)
      .nullable()
      .default(null)
      .describe('How long archives stay; null: for ever.'),
    force: z
      .boolean()
      .default(false)
      .describe('Rows that groups have not passed go too: what they miss is lost to them.'),
  })
  .meta({ examples: [{ ...ADA, confirm: 'orders', to: 'collections', afterHours: 336 }] });
export const pauseBody = z
  .strictObject({ ...decision, topic: line(127).nullable().default(null) })
  .meta({ examples: [{ ...ADA, topic: 'orders-events' }] });
