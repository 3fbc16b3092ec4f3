/** The shapes of what the ledger finds, as JSON has them: moments are RFC 3339, ids are texts. Published in the OpenAPI page. */
import { z } from 'zod';

export const moment = z.iso.datetime();
export const count = z.int().min(0);
const outboxStatus = z.enum(['PENDING', 'PROCESSING', 'PUBLISHED', 'FAILED', 'DEAD']);
export const notKnown = z.array(z.string()).describe('What could not be found out, in whole sentences.');
export const failure = z.object({ code: z.string(), message: z.string(), stack: z.string().nullable() });
export const shortFailure = z.looseObject({ code: z.string(), message: z.string() });
const headers = z.object({
  traceparent: z.string().optional(),
  tracestate: z.string().optional(),
  tenantId: z.string().optional(),
  correlationId: z.string().optional(),
  causationId: z.string().optional(),
});

export const event = z.object({
  eventId: z.string(),
  eventType: z.string(),
  eventVersion: count,
  source: z.string(),
  aggregate: z.string().describe('source/aggregateType/aggregateId, each percent-encoded'),
  version: count,
  topic: z.string(),
  status: outboxStatus,
  occurredAt: moment,
  createdAt: moment,
  publishedAt: moment.nullable(),
  headers,
  digest: z.string(),
  producer: z.string().describe('The producer’s database.'),
  place: z.string().describe('The collection or the archive file that it lies in.'),
});

/** What an operator did: `details` and `outcome` of those that took a while, the dead letter of those that decided about one. */
export const action = z.looseObject({
  _id: z.string(),
  action: z.string(),
  target: z.string(),
  by: z.string(),
  reason: z.string(),
  at: moment,
});

export const verdict = z
  .looseObject({ kind: z.string() })
  .describe('How it stands, by `kind`, with what that depends on.');

const parked = z.object({
  gap: count,
  behind: count,
  retry: count,
  dead: count,
  setAside: count,
  oldestParkedAt: moment.nullable(),
});

export const pause = z.object({ _id: z.string(), by: z.string(), reason: z.string(), at: moment });

export const groupStanding = z.object({
  group: z.string(),
  producer: z.string(),
  database: z.string().nullable(),
  topics: z.array(z.string()),
  state: z.enum(['bootstrapping', 'live']),
  watermark: moment,
  lagMs: z.number(),
  sweeper: z.string().nullable().describe('The member that compares; null: no worker of the group runs.'),
  parked: z.union([parked, z.null()]).describe('null where the group’s database is not known.'),
});
