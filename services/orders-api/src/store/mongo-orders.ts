import { guarded } from '@nightporter/mongo';
import type { EmitRequest, Outbox, TransactionScope } from '@nightporter/outbox';
import { NightporterError } from '@nightporter/protocol';
import { MongoServerError, type ClientSession, type MongoClient } from 'mongodb';
import { decide, evolve, type Order, type OrderEvent } from '../domain/order.js';
import type { CommandOutcome, CommandRequest, CommandResult, ExpectedVersion, Orders } from '../orders.js';
import { fieldsOf, orderOf, ordersCollections, type OrdersCollections } from './documents.js';

export interface MongoOrdersOptions {
  readonly client: MongoClient;
  readonly database: string;
  readonly outbox: Outbox;
  /** How long a repeat of a request gets the first one's answer. */
  readonly idempotencyRetentionMs: number;
  /** How long a command is tried while the database fails or others win; then NP_STORE_UNAVAILABLE or NP_TRANSACTION_CONFLICT. */
  readonly commandMs: number;
}

/**
 * Two requests that create the same order, or that carry the same key, may both find nothing and insert: the loser's transaction is
 * rolled back by the unique _id and, started anew, sees what the winner wrote. One repeat would do; the limit only bounds a defect.
 */
const ATTEMPTS_MAX = 3;

/** {@link Orders} on MongoDB. */
export function createMongoOrders(options: MongoOrdersOptions): Orders {
  const collections = ordersCollections(options.client.db(options.database));
  return {
    execute: async (request) => {
      for (let attempt = 1; ; attempt += 1) {
        try {
          return await options.outbox.transaction((scope) => executeIn(scope, request, { ...options, collections }), {
            headers: request.headers,
            retryMs: options.commandMs,
          });
        } catch (error) {
          // Looked at out here only: a duplicate key inside a transaction has ended it already.
          if (!isDuplicateKey(error) || attempt >= ATTEMPTS_MAX) throw error;
        }
      }
    },
    find: async (orderId) => {
      const document = await guarded(`reading order ${orderId}`, () => collections.orders.findOne({ _id: orderId }));
      return document === null ? null : orderOf(document);
    },
  };
}

type Context = Pick<MongoOrdersOptions, 'idempotencyRetentionMs'> & { readonly collections: OrdersCollections };

async function executeIn(
  { session, emit }: TransactionScope,
  request: CommandRequest,
  context: Context,
): Promise<CommandResult> {
  const { idempotency } = request;
  if (idempotency !== null) {
    const known = await context.collections.idempotencyKeys.findOne({ _id: idempotency.key }, { session });
    if (known !== null) {
      if (known.requestHash !== idempotency.requestHash) return { kind: 'key-reused' };
      return { kind: 'decided', outcome: known.outcome, replayed: true };
    }
  }
  const document = await context.collections.orders.findOne({ _id: request.orderId }, { session });
  const before = document === null ? null : orderOf(document);
  const { outcome, events } = decideOn(before, request);
  if (outcome.kind === 'accepted' && events.length > 0) {
    await writeOrder({ before, after: outcome.order }, session, context.collections);
    let expectedVersion = before?.version ?? 0;
    for (const event of events) await emit(toEmit(request.orderId, { event, expectedVersion: expectedVersion++ }));
  }
  if (idempotency !== null) {
    const now = new Date();
    await context.collections.idempotencyKeys.insertOne(
      {
        _id: idempotency.key,
        requestHash: idempotency.requestHash,
        outcome,
        createdAt: now,
        expireAt: new Date(now.getTime() + context.idempotencyRetentionMs),
      },
      { session },
    );
  }
  return { kind: 'decided', outcome, replayed: false };
}

interface Decided {
  readonly outcome: CommandOutcome;
  readonly events: readonly OrderEvent[];
}

function decideOn(before: Order | null, request: CommandRequest): Decided {
  if (before !== null && !allows(request.expected, before.version)) {
    return { outcome: { kind: 'stale', version: before.version }, events: [] };
  }
  const decision = decide(request.command, before);
  switch (decision.kind) {
    case 'rejected':
      return { outcome: { kind: 'rejected', rejection: decision.rejection }, events: [] };
    case 'unchanged':
      if (before === null)
        throw new NightporterError(
          'NP_INTERNAL',
          `a command left order ${request.orderId} unchanged, which does not exist`,
        );
      return { outcome: { kind: 'accepted', order: before }, events: [] };
    case 'events': {
      const [first, ...rest] = decision.events;
      return {
        outcome: { kind: 'accepted', order: rest.reduce(evolve, evolve(before, first)) },
        events: decision.events,
      };
    }
  }
}

function allows(expected: ExpectedVersion, version: number): boolean {
  return expected.kind === 'any' || expected.versions.includes(version);
}

async function writeOrder(
  { before, after }: { before: Order | null; after: Order },
  session: ClientSession,
  { orders }: OrdersCollections,
): Promise<void> {
  const now = new Date();
  if (before === null) {
    await orders.insertOne({ _id: after.orderId, ...fieldsOf(after), createdAt: now, updatedAt: now }, { session });
    return;
  }
  const result = await orders.updateOne(
    { _id: after.orderId, version: before.version },
    { $set: { ...fieldsOf(after), updatedAt: now } },
    { session },
  );
  if (result.modifiedCount !== 1) {
    throw new NightporterError(
      'NP_TRANSACTION_CONFLICT',
      `order ${after.orderId} has left version ${before.version} meanwhile`,
    );
  }
}

/** An order's version counts its events: where the two disagree, the whole transaction must fail. */
function toEmit(
  orderId: string,
  { event, expectedVersion }: { event: OrderEvent; expectedVersion: number },
): EmitRequest {
  return {
    aggregateType: 'order',
    aggregateId: orderId,
    eventType: event.eventType,
    payload: event.payload,
    expectedVersion,
  };
}

/** Also where the outbox has wrapped the driver's error. */
function isDuplicateKey(error: unknown): boolean {
  if (error instanceof MongoServerError) return error.code === 11000;
  return error instanceof Error && error.cause !== undefined && isDuplicateKey(error.cause);
}
