import type { EventEnvelope } from '@nightporter/contracts';
import type { AggregateKey, AggregateVersion } from '@nightporter/protocol';
import type { Unavailable } from './ledger-ports.js';
import type { IncomingEvent, InboxOutcome, ParkedFailure, ParkedState } from './ports.js';

export type ConsumerEvent =
  | { readonly kind: 'received'; readonly count: number; readonly redelivered: number }
  | {
      readonly kind: 'settled';
      readonly event: IncomingEvent;
      readonly outcome: InboxOutcome;
      readonly attempt: number;
    }
  | { readonly kind: 'duplicate'; readonly event: IncomingEvent }
  | {
      readonly kind: 'parked';
      readonly event: IncomingEvent;
      readonly state: ParkedState;
      readonly failure: ParkedFailure | null;
    }
  | {
      readonly kind: 'set-aside';
      readonly id: string;
      readonly failure: ParkedFailure;
      readonly messageId: string;
      readonly topic: string;
      /** What the message says it is, which nobody vouches for; null where it says nothing that can be read. */
      readonly envelope: EventEnvelope | null;
      /** Null where the envelope is, or names none that can be written down. */
      readonly aggregate: AggregateKey | null;
      /** Of the envelope, else of the send that brought the message; null where neither has one. */
      readonly traceparent: string | null;
    }
  | { readonly kind: 'conflict' }
  /** Of what the duplicate filter took for settled, how many the inbox confirmed; the others went the ordinary way. */
  | { readonly kind: 'filtered'; readonly confirmed: number; readonly refuted: number }
  /** The duplicate filter is not asked for a while; nothing depends on it. */
  | { readonly kind: 'filter-unavailable'; readonly operation: string; readonly error: unknown }
  | { readonly kind: 'acknowledged'; readonly count: number }
  | { readonly kind: 'woken'; readonly count: number }
  /** The ledger sweep has gone on: rows that it saw, and how many of them were neither settled nor parked. */
  | { readonly kind: 'swept'; readonly seen: number; readonly missing: number }
  /**
   * The group catches up with its history: rows that this member has compared since it began, of about how many that were there then, and
   * up to when everything published is settled or parked.
   */
  | {
      readonly kind: 'bootstrapping';
      readonly topics: readonly string[];
      readonly walked: number;
      readonly about: number | null;
      readonly perSecond: number;
      readonly watermarkMs: number;
    }
  /** The group has caught up and is live, or another member has taken the walk over. */
  | {
      readonly kind: 'bootstrap-ended';
      readonly how: 'live' | 'taken-over';
      readonly topics: readonly string[];
      readonly walked: number;
      readonly tookMs: number;
    }
  /** Parked messages of this aggregate wait for a version that cannot be had from the ledger now. */
  | {
      readonly kind: 'version-unavailable';
      readonly aggregate: AggregateKey;
      readonly version: AggregateVersion;
      readonly reason: Unavailable;
    }
  /** The broker had given up a message of the group; its event is settled or parked now. Null: it names none, and is set aside. */
  | {
      readonly kind: 'broker-dead-letter';
      readonly messageId: string;
      readonly topic: string;
      readonly event: IncomingEvent | null;
    }
  /** Nobody knows whether there are any; the ledger sweep finds their events in any case. */
  | { readonly kind: 'broker-dead-letters-unavailable'; readonly error: unknown }
  /** Somebody else has been sent a copy of it. */
  | { readonly kind: 'dead-letter-copied'; readonly event: IncomingEvent }
  /** It is tried again, and nothing waits for it. */
  | { readonly kind: 'dead-letter-not-copied'; readonly error: unknown }
  /** Nothing is swept with this producer: nobody would know what to keep for the group. */
  | { readonly kind: 'unregistered' }
  | { readonly kind: 'ledger-unavailable'; readonly operation: string; readonly error: unknown }
  | { readonly kind: 'database-unavailable'; readonly operation: string; readonly error: unknown }
  | { readonly kind: 'broker-unavailable'; readonly operation: string; readonly error: unknown };

/** Told what happens, for logs and metrics. Must not throw and must not wait. */
export type ConsumerObserver = (event: ConsumerEvent) => void;
