import { z } from 'zod';
import { totalOf } from '../domain/order.js';

/** Free text that can be a key, part of a URL and of a message: no control characters, no half surrogate pairs. */
const LONE_SURROGATE = /\p{Surrogate}/u;
const CONTROL_CHARACTER = /\p{Cc}/u;

const wellFormed = (value: string): boolean => !LONE_SURROGATE.test(value);
const noControlCharacter = (value: string): boolean => !CONTROL_CHARACTER.test(value);

const line = (charactersMax: number) =>
  z
    .string()
    .min(1)
    .max(charactersMax)
    .refine(wellFormed, { error: 'must be well-formed Unicode, without a lone surrogate' })
    .refine(noControlCharacter, { error: 'must hold no control character' });

const identifier = line(200);

/** A client or proxy would resolve these as path segments, so that nothing could ever name such an order. */
const orderId = identifier.refine((value) => value !== '.' && value !== '..', { error: 'must not be "." or ".."' });

/** Up to the greatest exact integer, which is the greatest total of an order: whatever can be ordered can be paid. */
const minorUnits = z
  .int()
  .min(0)
  .refine((value) => !Object.is(value, -0), { error: 'must not be -0' });

const currency = z.string().regex(/^[A-Z]{3}$/, { error: 'must be three capital letters (ISO 4217)' });

const orderStatus = z.enum(['CREATED', 'PAID', 'COMPLETED', 'CANCELLED']);

const orderLine = z.strictObject({
  productId: identifier,
  quantity: z.int().min(1).max(1_000_000),
  unitPriceMinor: minorUnits.max(100_000_000_000).describe('Price of one piece in minor units (cents).'),
});

export const createOrderBody = z
  .strictObject({
    orderId: orderId.optional().describe('Chosen by the caller, or left out.'),
    customerId: identifier,
    currency,
    lines: z
      .array(orderLine)
      .min(1)
      .max(100)
      .refine((lines) => Number.isSafeInteger(totalOf(lines)), {
        error: `must add up to at most ${Number.MAX_SAFE_INTEGER} minor units`,
      }),
  })
  .meta({
    examples: [
      {
        orderId: 'o-1',
        customerId: 'ada',
        currency: 'EUR',
        lines: [{ productId: 'apple', quantity: 2, unitPriceMinor: 250 }],
      },
    ],
  });

export const payOrderBody = z
  .strictObject({
    transactionId: identifier.describe(
      "The payment provider's number: the same number again is a repeat, not a second payment.",
    ),
    amountMinor: minorUnits.optional().describe('Where given, it must be the exact total of the order.'),
  })
  .meta({ examples: [{ transactionId: 't-1', amountMinor: 500 }] });

export const cancelOrderBody = z
  .strictObject({ reason: line(1000).optional() })
  .nullish()
  .meta({ examples: [{ reason: 'ordered twice' }] });

export const completeOrderBody = z
  .strictObject({})
  .nullish()
  .meta({ examples: [{}] });

export const orderParams = z.strictObject({ orderId });

/** 1 to 255 visible ASCII characters and inner blanks. */
const idempotencyKey = z
  .string()
  .regex(/^[\x21-\x7e](?:[\x20-\x7e]{0,253}[\x21-\x7e])?$/, { error: 'must be 1 to 255 visible ASCII characters' });

export const createHeaders = z.looseObject({
  'idempotency-key': idempotencyKey
    .optional()
    .describe('Names this request: a repeat with the same key and content gets the first answer and changes nothing.'),
});

export const commandHeaders = createHeaders.extend({
  'if-match': z
    .string()
    .regex(/^(\*|(W\/)?"[^"]*"(\s*,\s*(W\/)?"[^"]*")*)$/, { error: 'must be * or quoted entity tags, such as "3"' })
    .optional()
    .describe('Carry the command out only while the order has this ETag, otherwise answer 412.'),
});

const EXAMPLE_ORDER = {
  orderId: 'o-1',
  version: 2,
  status: 'PAID',
  customerId: 'ada',
  currency: 'EUR',
  lines: [{ productId: 'apple', quantity: 2, unitPriceMinor: 250 }],
  totalMinor: 500,
  payment: { transactionId: 't-1', amountMinor: 500 },
  cancellation: null,
};

const order = z.object({
  orderId: z.string(),
  version: z.number(),
  status: orderStatus,
  customerId: z.string(),
  currency: z.string(),
  lines: z.array(z.object({ productId: z.string(), quantity: z.number(), unitPriceMinor: z.number() })).readonly(),
  totalMinor: z.number(),
  payment: z.object({ transactionId: z.string(), amountMinor: z.number() }).nullable(),
  cancellation: z.object({ reason: z.string() }).nullable(),
});

export const orderAnswer = order.meta({ examples: [EXAMPLE_ORDER] });

export const paymentCallbackBody = z
  .strictObject({
    orderId,
    paymentTransactionNo: identifier.describe(
      "The payment provider's number: it stands for this one payment for ever, and the same callback gets the same answer.",
    ),
    amountMinor: minorUnits.describe('What was paid, in minor units (cents).'),
    currency,
  })
  .meta({ examples: [{ orderId: 'o-1', paymentTransactionNo: 't-1', amountMinor: 500, currency: 'EUR' }] });

export const paymentAnswer = z
  .object({
    paymentTransactionNo: z.string(),
    orderId: z.string(),
    amountMinor: z.number(),
    currency: z.string(),
    outcome: z
      .enum(['applied', 'surplus'])
      .describe('applied: the order is paid by it. surplus: the order did not call for it, and it is owed back.'),
  })
  .meta({
    examples: [{ paymentTransactionNo: 't-1', orderId: 'o-1', amountMinor: 500, currency: 'EUR', outcome: 'applied' }],
  });

const CURSOR = /^[A-Za-z0-9_-]{1,1200}$/;

/** The place behind an order. Opaque to callers. */
export function encodeCursor(id: string): string {
  return Buffer.from(id, 'utf8').toString('base64url');
}

const cursor = z
  .string()
  .regex(CURSOR, { error: 'must be the "next" of a page' })
  .transform((value) => Buffer.from(value, 'base64url').toString('utf8'));

export const listQuery = z.strictObject({
  customerId: identifier.optional(),
  status: orderStatus.optional(),
  limit: z.coerce.number().int().min(1).max(200).default(50).describe('Orders on a page.'),
  cursor: cursor.optional().describe('The "next" of the page before.'),
});

export const listAnswer = z
  .object({
    orders: z.array(order).readonly(),
    next: z.string().nullable().describe('Pass it as cursor to get the next page; null on the last one.'),
  })
  .meta({ examples: [{ orders: [EXAMPLE_ORDER], next: null }] });

/** Nothing more is said: the caller has this version already. */
export const unchangedAnswer = z.null();

const eventCursor = z
  .string()
  .regex(CURSOR, { error: 'must be the "next" of a page' })
  .transform((value) => Number(Buffer.from(value, 'base64url').toString('utf8')))
  .refine((version) => Number.isSafeInteger(version) && version >= 0, { error: 'must be the "next" of a page' });

export const eventsQuery = z.strictObject({
  limit: z.coerce.number().int().min(1).max(200).default(50).describe('Events on a page.'),
  cursor: eventCursor.optional().describe('The "next" of the page before.'),
});

export const eventsAnswer = z
  .object({
    events: z
      .array(
        z.object({
          version: z.number().describe('The place in the order’s story: 1, 2, 3 … without a hole.'),
          event: z
            .object({
              eventId: z.string(),
              eventType: z.string(),
              occurredAt: z.string(),
              topic: z.string(),
              status: z
                .enum(['PENDING', 'PROCESSING', 'PUBLISHED', 'FAILED', 'DEAD'])
                .describe(
                  'PUBLISHED: the broker has it. FAILED: it will be tried again. DEAD: it waits for an operator.',
                ),
              publishedAt: z.string().nullable(),
            })
            .nullable()
            .describe(
              'null: it was committed, and retention has deleted it, or moved it to where it cannot be read (then notKnown says so).',
            ),
          groups: z
            .record(z.string(), z.string())
            .describe(
              'Consumer group → applied, ignored, skipped …; parked: <state>; missing (not there yet); past (settled long ago); before-start.',
            ),
        }),
      )
      .readonly(),
    next: z.string().nullable().describe('Pass it as cursor to get the next page; null on the last one.'),
    notKnown: z.array(z.string()).readonly().describe('What could not be found out, in whole sentences.'),
  })
  .meta({
    examples: [
      {
        events: [
          {
            version: 1,
            event: {
              eventId: '019a0000-0000-7000-8000-000000000001',
              eventType: 'OrderCreated',
              occurredAt: '2026-11-30T12:00:00.000Z',
              topic: 'orders-events',
              status: 'PUBLISHED',
              publishedAt: '2026-11-30T12:00:00.012Z',
            },
            groups: { inventory: 'applied', points: 'applied', notification: 'missing' },
          },
        ],
        next: null,
        notKnown: [],
      },
    ],
  });
