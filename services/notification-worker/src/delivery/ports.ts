import type { Channel } from '../domain/notice.js';
import type { NotificationDocument } from '../documents.js';

/** What a sender is given: all that a receiver may see. */
export type Notification = Pick<
  NotificationDocument,
  '_id' | 'channel' | 'recipient' | 'orderId' | 'eventId' | 'eventType' | 'occurredAt' | 'subject' | 'text'
>;

export type SendOutcome =
  | { readonly kind: 'sent'; readonly receipt: string | null }
  /** It may have arrived or not, and may be sent again. `afterMs`: the receiver asked for so much time. */
  | { readonly kind: 'transient'; readonly reason: string; readonly afterMs?: number }
  /** This notification will never be taken, however often it is sent. */
  | { readonly kind: 'permanent'; readonly reason: string };

/** One channel. */
export interface Sender {
  /**
   * Sends once, with the notification's `_id` as its idempotency key. What the receiver says is a value; it rejects only where nothing
   * is known of why, which counts as transient. `signal` aborts when its time is up: it then ends soon, whatever has become of it.
   */
  send(notification: Notification, signal: AbortSignal): Promise<SendOutcome>;
  /** Lets go of its connections. */
  close(): Promise<void>;
}

/** A notification in hand: its attempt has been counted, and nobody else claims it until the claim runs out. */
export interface ClaimedNotification extends Notification {
  readonly attempts: number;
  readonly revision: number;
}

/** What is waiting to be sent. All times are on the database's clock; every method rejects with NP_STORE_UNAVAILABLE. */
export interface DeliveryQueue {
  /** Claims at most `limit` that are due on `channels`, the oldest first; each attempt is counted before it is made. */
  claimDue(request: {
    readonly channels: readonly Channel[];
    readonly limit: number;
    readonly claimMs: number;
  }): Promise<readonly ClaimedNotification[]>;
  /** Writes what became of a claim; all but `sent` only where the claim is still the latest. */
  settle(claimed: ClaimedNotification, verdict: DeliveryVerdict): Promise<void>;
  measure(channels: readonly Channel[]): Promise<QueueFigures>;
}

export type DeliveryVerdict =
  | { readonly kind: 'sent'; readonly receipt: string | null }
  | { readonly kind: 'retry'; readonly delayMs: number; readonly reason: string }
  | { readonly kind: 'dead'; readonly because: 'transient' | 'permanent'; readonly reason: string }
  /** Not sent after all, and not counted: the worker is stopping. */
  | { readonly kind: 'given-back' };

export interface QueueFigures {
  readonly pending: number;
  readonly dead: number;
  /** Pending on channels that this worker does not serve. */
  readonly unserved: number;
  /** Since the event of the oldest pending one occurred; null where none is pending. */
  readonly oldestPendingMs: number | null;
}
