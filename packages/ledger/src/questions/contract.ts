/**
 * Questions about where events are. Each answer is data: what a terminal or a browser makes of it is none of its business. Whatever could not
 * be found out is said in `notKnown`, in whole sentences.
 */
import type { EventHeaders, JsonValue, OutboxStatus } from '@nightporter/contracts';
import type { GroupActionDocument, OperatorActionDocument } from '@nightporter/mongo';
import type { AggregateKey, EventId } from '@nightporter/protocol';
import type { GroupVerdict, RelayVerdict } from './explain.js';

/** An event as the ledger has it, without what it says. */
export interface EventSummary {
  readonly eventId: EventId;
  readonly eventType: string;
  readonly eventVersion: number;
  readonly source: string;
  readonly aggregate: AggregateKey;
  readonly version: number;
  readonly topic: string;
  readonly status: OutboxStatus;
  readonly occurredAt: Date;
  readonly createdAt: Date;
  readonly publishedAt: Date | null;
  readonly headers: EventHeaders;
  readonly digest: string;
  /** The producer's database. */
  readonly producer: string;
  /** The collection or the archive file that it lies in. */
  readonly place: string;
}

/** One thing that happened, and when. `at` is null where the moment was not kept. */
export interface Step {
  readonly at: Date | null;
  /** The group that it happened in; null: at the producer or the relay. */
  readonly group: string | null;
  readonly kind: StepKind;
  /** One sentence without its full stop. */
  readonly text: string;
}

export type StepKind =
  | 'created'
  | 'captured'
  | 'published'
  | 'failed'
  | 'received'
  | 'settled'
  | 'repeated'
  | 'parked'
  | 'set-aside'
  | 'operator';

/** How one group stands to one event. */
export interface GroupTimeline {
  readonly group: string;
  /** Its own database; null where nobody says which that is. */
  readonly database: string | null;
  /** Whether it is registered for the event's topic with the producer now. */
  readonly isRegistered: boolean;
  /** Null where its database is not known. */
  readonly verdict: GroupVerdict | null;
  /** The command, or the deed, that mends it or tells more; null where it is done, or goes on by itself. */
  readonly mend: string | null;
  readonly attempts: number;
  /** Deliveries after the one that settled it. */
  readonly repeats: number;
  readonly receivedAt: Date | null;
  readonly settledAt: Date | null;
  /** Of what the handler was given, where an operator had edited it. */
  readonly appliedDigest: string | null;
  readonly actions: readonly GroupActionDocument[];
}

export type Timeline =
  | {
      readonly kind: 'known';
      readonly event: EventSummary;
      /** What was said in it; null where it was asked for without. */
      readonly payload: JsonValue;
      readonly relay: RelayVerdict;
      /** What has to be done at the relay, as `mend` of a group. */
      readonly mend: string | null;
      readonly publication: {
        readonly topic: string;
        readonly messageId: string;
        readonly relay: string;
        readonly epoch: number;
        readonly capturedAt: Date;
      } | null;
      readonly actions: readonly OperatorActionDocument[];
      readonly groups: readonly GroupTimeline[];
      /** All that happened, by time; what has no moment stands where it belongs. */
      readonly steps: readonly Step[];
      readonly notKnown: readonly string[];
    }
  /** No ledger has it, and groups still do: it was deleted, or never written by a producer that is looked at. */
  | {
      readonly kind: 'only-in-groups';
      readonly eventId: EventId;
      readonly groups: readonly GroupTimeline[];
      readonly steps: readonly Step[];
      readonly notKnown: readonly string[];
    }
  /** Nothing has it: never committed, rolled back, or forgotten by all. */
  | {
      readonly kind: 'unknown';
      readonly eventId: EventId;
      readonly lookedIn: readonly string[];
      readonly notKnown: readonly string[];
    };
