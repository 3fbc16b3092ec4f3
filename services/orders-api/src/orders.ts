import type { EventHeaders } from '@nightporter/contracts';
import type { Order, OrderCommand, OrderStatus, Rejection } from './domain/order.js';
import type { Payment } from './domain/payment.js';

/** The versions that a caller is willing to change, from `If-Match`: any, or one of these. */
export type ExpectedVersion =
  { readonly kind: 'any' } | { readonly kind: 'one-of'; readonly versions: readonly number[] };

export interface CommandRequest {
  readonly orderId: string;
  readonly command: OrderCommand;
  readonly expected: ExpectedVersion;
  /** The caller's name for this request, and a hash of all that it asks for. */
  readonly idempotency: { readonly key: string; readonly requestHash: string } | null;
  readonly headers: EventHeaders;
}

/** What a command came to. It is stored with the idempotency key, so that a repeat gets the very same answer. */
export type CommandOutcome =
  | { readonly kind: 'accepted'; readonly order: Order }
  | { readonly kind: 'rejected'; readonly rejection: Rejection }
  /** The order is at another version than `If-Match` asked for. */
  | { readonly kind: 'stale'; readonly version: number };

export type CommandResult =
  | { readonly kind: 'decided'; readonly outcome: CommandOutcome; readonly replayed: boolean }
  /** The idempotency key belongs to another request. */
  | { readonly kind: 'key-reused' };

/**
 * Orders with their events. `execute` reads, decides and writes (order, idempotency record, events) in one transaction: all of it or
 * nothing. Rejects with NP_TRANSACTION_CONFLICT or NP_STORE_UNAVAILABLE when the caller should try again.
 */
export interface Orders {
  execute(request: CommandRequest): Promise<CommandResult>;
  find(orderId: string): Promise<Order | null>;
  findPayment(transactionId: string): Promise<Payment | null>;
  /** In the order of their ids, at most `limit`, behind the order `after`. */
  list(query: OrdersQuery): Promise<readonly Order[]>;
}

export interface OrdersQuery {
  readonly customerId: string | null;
  readonly status: OrderStatus | null;
  readonly after: string | null;
  readonly limit: number;
}
