/**
 * What travels between a group and the ops API of its producer. Each side checks what it receives against these shapes. Moments are milliseconds since
 * 1970 on the producer's database clock. An event travels as the text of its message body, so that it is read here as it is from the broker.
 */
import { z } from 'zod';

/** Places that one request asks for: with the largest events their answer is 32 MiB. */
export const PLACES_MAX = 32;
/** Rows that one page looks at. */
export const PAGE_MAX = 5_000;
/** Heads on a page. */
export const HEADS_MAX = 200;
const DAY_MS = 86_400_000;

const moment = z.number().min(0).max(Number.MAX_SAFE_INTEGER);
const text = z.string().min(1).max(1_000);
const topic = z.string().regex(/^[%A-Za-z0-9_-]{1,127}$/, { error: 'must be 1 to 127 letters, digits, %, _ or -' });
const topics = z.array(topic).min(1).max(1_000);
export const aggregateKey = z
  .string()
  .max(10_000)
  .refine(isAggregateKey, { error: 'must be source/aggregateType/aggregateId, each percent-encoded' })
  .describe('source/aggregateType/aggregateId, each percent-encoded');
const version = z.int().min(1);

/** Three parts that can be decoded. */
function isAggregateKey(text: string): boolean {
  const parts = text.split('/');
  if (parts.length !== 3 || parts.includes('')) return false;
  try {
    parts.forEach((part) => decodeURIComponent(part));
    return true;
  } catch {
    return false;
  }
}

export const producerParams = z.strictObject({
  producer: z
    .string()
    .regex(/^[A-Za-z0-9_-]{1,38}$/, { error: 'must be 1 to 38 letters, digits, _ or -' })
    .describe('The producer, by the name of its database.'),
});

export const groupParams = producerParams.extend({
  group: z
    .string()
    .regex(/^(?!registry$)[%A-Za-z0-9_-]{1,100}(@[1-9][0-9]{0,3})?$/, {
      error: 'must be 1 to 100 letters, digits, %, _ or -, with @ and a number for a generation, and not "registry"',
    })
    .describe('The consumer group.'),
});

export const publishedRequest = z
  .strictObject({
    topics,
    // An overlap before the beginning is a moment too.
    afterMs: z.number().min(Number.MIN_SAFE_INTEGER).max(Number.MAX_SAFE_INTEGER),
    lagMs: z.number().min(0).max(DAY_MS),
    limit: z.int().min(1).max(PAGE_MAX),
    withArchive: z.boolean(),
  })
  .meta({
    examples: [
      { topics: ['orders-events'], afterMs: 1_764_504_000_000, lagMs: 10_000, limit: 1_000, withArchive: false },
    ],
  });

export const publishedAnswer = z
  .object({
    rows: z.array(z.object({ eventId: text, aggregate: aggregateKey, version })),
    toMs: z.number().min(Number.MIN_SAFE_INTEGER).max(Number.MAX_SAFE_INTEGER),
    isEnd: z.boolean(),
  })
  .meta({
    examples: [
      {
        rows: [{ eventId: '019a0000-0000-7000-8000-000000000001', aggregate: 'orders/order/o-1', version: 1 }],
        toMs: 1_764_504_000_000,
        isEnd: true,
      },
    ],
  });

export const countRequest = z
  .strictObject({
    afterMs: z.number().min(Number.MIN_SAFE_INTEGER).max(Number.MAX_SAFE_INTEGER),
  })
  .meta({ examples: [{ afterMs: 1_764_504_000_000 }] });

export const countAnswer = z.object({ rows: z.int().min(0) }).meta({ examples: [{ rows: 1200 }] });

export const versionsRequest = z
  .strictObject({
    places: z
      .array(z.strictObject({ aggregate: aggregateKey, version }))
      .min(1)
      .max(PLACES_MAX),
  })
  .meta({ examples: [{ places: [{ aggregate: 'orders/order/o-1', version: 1 }] }] });

export const versionsAnswer = z
  .object({
    answers: z.array(
      z.discriminatedUnion('kind', [
        z.object({
          kind: z.literal('published'),
          publishedAtMs: moment,
          body: z.string().describe('The envelope, as the text of its message.'),
          topic,
          form: z.enum(['original', 'tombstone']),
          digest: text,
          messageId: text,
        }),
        z.object({ kind: z.enum(['not-committed', 'unpublished', 'dead', 'deleted']) }),
      ]),
    ),
  })
  .meta({ examples: [{ answers: [{ kind: 'deleted' }] }] });

export const registerRequest = z
  .strictObject({
    topics,
    from: z.enum(['beginning', 'now']),
    unavailable: z
      .enum(['refuse', 'accept'])
      .describe('Whether a start from the beginning takes what retention has left, where it has deleted something.'),
  })
  .meta({ examples: [{ topics: ['orders-events'], from: 'beginning', unavailable: 'refuse' }] });

export const registerAnswer = z
  .object({
    starting: z
      .object({
        sinceMs: moment,
        starts: z.enum(['at-heads', 'behind-deleted']),
      })
      .nullable()
      .describe('Given while the group has its positions to set, before it receives anything.'),
    topicsRemoved: z
      .array(topic)
      .optional()
      .describe('Those that the group had until now. An older server does not tell.'),
  })
  .meta({ examples: [{ starting: { sinceMs: 1_764_504_000_000, starts: 'at-heads' }, topicsRemoved: [] }] });

export const headsRequest = z
  .strictObject({
    behind: z.string().max(10_000),
    limit: z.int().min(1).max(HEADS_MAX),
    starts: z.enum(['at-heads', 'behind-deleted']),
  })
  .meta({ examples: [{ behind: '', limit: 200, starts: 'at-heads' }] });

export const headsAnswer = z
  .object({
    starts: z.array(z.object({ aggregate: aggregateKey, version })),
    /** Where the next page begins; null on the last one. */
    next: z.string().nullable(),
  })
  .meta({ examples: [{ starts: [{ aggregate: 'orders/order/o-1', version: 3 }], next: null }] });

export const startedRequest = z.strictObject({ sinceMs: moment }).meta({ examples: [{ sinceMs: 1_764_504_000_000 }] });

export const standingAnswer = z
  .object({
    state: z.enum(['bootstrapping', 'live']),
    watermarkMs: moment,
    topics: z.array(topic).optional().describe('Those that the group sweeps. An older server does not tell.'),
  })
  .meta({ examples: [{ state: 'live', watermarkMs: 1_764_504_000_000, topics: ['orders-events'] }] });

export const claimRequest = z
  .strictObject({ owner: text, durationMs: z.int().min(1).max(DAY_MS) })
  .meta({ examples: [{ owner: 'inventory-worker-1', durationMs: 30_000 }] });

export const claimAnswer = z
  .discriminatedUnion('kind', [
    z.object({
      kind: z.literal('claimed'),
      topics: z.array(topic),
      watermarkMs: moment,
      floorMs: moment,
      state: z.enum(['bootstrapping', 'live']),
    }),
    z.object({ kind: z.enum(['held', 'unregistered']) }),
  ])
  .meta({
    examples: [
      {
        kind: 'claimed',
        topics: ['orders-events'],
        watermarkMs: 1_764_504_000_000,
        floorMs: 1_764_504_000_000,
        state: 'live',
      },
    ],
  });

export const watermarkRequest = z
  .strictObject({ toMs: moment, floorMs: moment })
  .meta({ examples: [{ toMs: 1_764_504_060_000, floorMs: 1_764_504_000_000 }] });
export const releaseRequest = z.strictObject({ owner: text }).meta({ examples: [{ owner: 'inventory-worker-1' }] });
export const done = z.strictObject({}).meta({ examples: [{}] });
