import { guarded } from '@nightporter/mongo';
import type { Outbox, TransactionScope } from '@nightporter/outbox';
import { MongoServerError, type MongoClient } from 'mongodb';
import type { CommandRequest, CommandResult, Orders } from '../orders.js';
import { applyCommand, type CommandScope } from './apply-command.js';
import { orderOf, ordersCollections, paymentOf, type OrdersCollections } from './documents.js';

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
            workMs: options.commandMs,
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
    findPayment: async (transactionId) => {
      const what = `reading payment ${transactionId}`;
      const document = await guarded(what, () => collections.payments.findOne({ _id: transactionId }));
      return document === null ? null : paymentOf(document);
    },
    list: async ({ customerId, status, after, limit }) => {
      const filter = {
        ...(customerId === null ? {} : { customerId }),
        ...(status === null ? {} : { status }),
        ...(after === null ? {} : { _id: { $gt: after } }),
      };
      const documents = await guarded('listing orders', () =>
        collections.orders.find(filter).sort({ _id: 1 }).limit(limit).toArray(),
      );
      return documents.map(orderOf);
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
  const outcome = await applyCommand({ session, emit: emitWith(emit) }, request, context.collections);
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

function emitWith(emit: TransactionScope['emit']): CommandScope['emit'] {
  return async ({ eventType, payload }, place) => {
    await emit({ ...place, eventType, payload });
  };
}

/** Also where the outbox has wrapped the driver's error. */
function isDuplicateKey(error: unknown): boolean {
  if (error instanceof MongoServerError) return error.code === 11000;
  return error instanceof Error && error.cause !== undefined && isDuplicateKey(error.cause);
}
