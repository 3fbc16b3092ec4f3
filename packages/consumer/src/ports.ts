/**
 * What the consumer engine needs of the world. Each port's comment is its contract; one conformance suite runs on the
 * in-memory and on the real adapter of each.
 *
 * A call that could not be carried out, or whose outcome is unknown, rejects with a NightporterError: NP_STORE_UNAVAILABLE
 * for the database, {@link BrokerError} for the broker. It may still execute later, after its caller has given up or died.
 */
import type { EventEnvelope, PublicationForm } from '@nightporter/contracts';
import type { AggregatePlace } from './ledger-ports.js';
import { NightporterError, type AggregateKey, type AggregateVersion, type EventId } from '@nightporter/protocol';

/** A message that the broker handed out, not yet acknowledged. */
export interface Delivery {
  readonly messageId: string;
  readonly topic: string;
  /** The body as it came; decoding is the engine's. */
  readonly body: Uint8Array;
  readonly properties: Readonly<Record<string, string>>;
  /**
   * 1 at the first delivery. A lower bound: a broker that counts by queue (RocketMQ's proxy in local mode) says 1 again when new messages
   * come along with a redelivered one.
   */
  readonly deliveryAttempt: number;
  /** Names the delivery to its subscriber; replaced by `extend`. */
  readonly receipt: unknown;
}

export class BrokerError extends NightporterError {
  constructor(message: string, options?: { cause?: unknown }) {
    super('NP_BROKER_UNAVAILABLE', message, options);
    this.name = 'BrokerError';
  }
}

/**
 * One group's subscription to one FIFO topic, all tags. `receive` waits at most a few seconds for at least one message;
 * within one result, messages of one message group stand in order. `acknowledge` takes deliveries of one `receive` in their order,
 * many in one request; a stale receipt is not an error. `extend` keeps deliveries invisible for `invisibleMs` from now and
 * returns them with their new receipts. `group`, where an adapter tells it, is the group's name at the broker, and compared at the start.
 */
export interface Subscriber {
  readonly group?: string;
  receive(request: { max: number; invisibleMs: number }): Promise<readonly Delivery[]>;
  acknowledge(deliveries: readonly Delivery[]): Promise<void>;
  extend(deliveries: readonly Delivery[], invisibleMs: number): Promise<readonly Delivery[]>;
}

/** A message decoded and checked for identity: what is sequenced, parked, and handed to handlers. */
export interface IncomingEvent {
  readonly envelope: EventEnvelope;
  readonly aggregate: AggregateKey;
  readonly topic: string;
  readonly form: PublicationForm;
  /** Digest that travelled with the message, or after an operator's edit the digest of what is applied instead. */
  readonly digest: string;
  /** Only after an operator's edit: the digest of the event as its producer wrote it. */
  readonly writtenDigest?: string;
  readonly messageId: string;
  /** When it was written, in milliseconds since 1970 on the producer's database clock, where that came along. For figures only. */
  readonly createdAtMs?: number;
  /** Trace context of the send that brought it, where that is another than the envelope's. For traces only. */
  readonly sentIn?: string;
  /**
   * What was found of a parked event whose envelope was damaged in the database; `envelope` only stands in for it, with another digest. It stays parked
   * with this text, for what stands in would pass for an event the next time.
   */
  readonly damagedText?: string;
}

/** Where an event stands, for whoever need not know what it holds. */
export interface EventPlace {
  readonly aggregate: AggregateKey;
  readonly envelope: Pick<EventEnvelope, 'eventId' | 'aggregateVersion'>;
}

export type InboxOutcome = 'applied' | 'ignored' | 'skipped';

export interface InboxRecord {
  readonly eventId: EventId;
  readonly aggregate: AggregateKey;
  readonly version: AggregateVersion;
  readonly outcome: InboxOutcome;
}

/** Per (group, aggregate): the last settled version. Absent means version 0, start 0, open. */
export interface Position {
  readonly version: number;
  /** Everything up to here counts as before the group's start. */
  readonly startVersion: number;
  readonly state: 'open' | 'blocked';
}

/**
 * Why a message is parked. `gap`: a lower version has not come. `behind`: a lower version is parked. `retry`: its turn,
 * waiting for `nextRetryAt`. `dead`: waits for an operator.
 */
export type ParkedState = 'gap' | 'behind' | 'retry' | 'dead';

export interface ParkedFailure {
  readonly code: string;
  readonly message: string;
  readonly stack: string | null;
}

/** A parked message that has its place in the sequence of its aggregate. */
export interface ParkedEvent {
  readonly event: IncomingEvent;
  readonly state: ParkedState;
  /** Claims so far; a claim counts before the handler runs. */
  readonly attempts: number;
  /** Raised by every change of the parked document. */
  readonly revision: number;
  /** Parked before it ran, since it may have ended a process. */
  readonly isSuspect?: boolean;
  /** Of a claim: the claim before it ended without a word, so that whoever had it may have died of it. */
  readonly isUnanswered?: boolean;
}

/** What a transaction sees of the aggregates and events that it asked for. */
export interface GroupState {
  readonly positions: ReadonlyMap<AggregateKey, Position>;
  /** Inbox records of the requested events. */
  readonly inboxByEvent: ReadonlyMap<EventId, InboxRecord>;
  /** Inbox records at the requested versions: key `aggregate#version`, see {@link versionKey}. */
  readonly inboxByVersion: ReadonlyMap<string, InboxRecord>;
  /** Sequenced parked messages at the requested versions and at the versions right behind them: key `aggregate#version`. */
  readonly parked: ReadonlyMap<string, ParkedEvent>;
  /** The moment of the transaction, on the database's clock. */
  readonly nowMs: number;
}

export function versionKey(aggregate: AggregateKey, version: number): string {
  return `${aggregate}#${version}`;
}

/** One write of a settling or parking transaction. */
export type GroupChange =
  | {
      readonly kind: 'settle';
      readonly event: IncomingEvent;
      readonly outcome: InboxOutcome;
      readonly attempts: number;
    }
  /** Upserts the position and always writes it (a revision is raised), so that concurrent verdicts conflict. */
  | { readonly kind: 'position'; readonly aggregate: AggregateKey; readonly position: Position }
  /** Counts a repeat on the inbox record of the event, where there is one. */
  | { readonly kind: 'count-duplicate'; readonly eventId: EventId }
  /**
   * Parks a message or changes a parked one; nextRetryAt = database clock + `retryInMs` where given, else none. `replaces`: another
   * message was parked there, and nothing of it stays but its revision, which rises, so that a claim of it is void.
   */
  | {
      readonly kind: 'park';
      readonly event: IncomingEvent;
      readonly state: ParkedState;
      readonly attempts: number;
      readonly retryInMs: number | null;
      readonly failure: ParkedFailure | null;
      readonly replaces?: true;
      readonly isSuspect?: true;
    }
  /** Makes a parked message due at once (`retry`, nextRetryAt = now); a `dead` one stays dead. */
  | { readonly kind: 'make-due'; readonly aggregate: AggregateKey; readonly version: AggregateVersion }
  | { readonly kind: 'unpark'; readonly aggregate: AggregateKey; readonly version: AggregateVersion }
  /** Keeps a message that cannot be sequenced: unreadable, or a version conflict. A repeat only counts. */
  | {
      readonly kind: 'set-aside';
      readonly id: string;
      readonly topic: string;
      readonly messageId: string;
      readonly body: Uint8Array;
      readonly properties: Readonly<Record<string, string>>;
      readonly failure: ParkedFailure;
    };

/**
 * One transaction of a group. `load` and `save` see and write through it; handlers write through `session`. `load` may
 * be called once, before `save`; `save` is called at most once, last, and carries its changes out in their order: one batch may park
 * a message and make it due, or settle an event and count a duplicate of it.
 */
export interface GroupTransaction<Session> {
  readonly session: Session;
  load(events: readonly EventPlace[]): Promise<GroupState>;
  save(changes: readonly GroupChange[]): Promise<void>;
}

/**
 * The group's documents in its own database. `transact` runs `work` in one transaction (majority, journaled) and
 * commits it; it runs `work` once, and does not repeat it. Rejects with NP_TRANSACTION_CONFLICT when a concurrent transaction won, with
 * NP_STORE_UNAVAILABLE when the database failed or the outcome of the commit is unknown, and with whatever `work` threw
 * when it threw something else (nothing is written then). An error that the database raised inside a handler counts as the database's.
 * `group`, where an adapter tells it, is compared at the start.
 */
export interface GroupStore<Session> {
  readonly group?: string;
  transact<Result>(work: (transaction: GroupTransaction<Session>) => Promise<Result>): Promise<Result>;
}

export interface ClaimRequest {
  /** Transactions that the caller can run now. */
  readonly limit: number;
  readonly repeatedLimit: number;
  /** So many messages that nobody has tried may share a transaction, and are handed out at once; 1: each needs its own. */
  readonly togetherMax: number;
  readonly claimMs: number;
  /** Whether the caller has no other claim in hand. */
  readonly isAlone: boolean;
}

/**
 * Parked messages whose turn has come. `claimDue` takes messages in state `retry` whose nextRetryAt has
 * passed on the database's clock, as many as fit into `limit` transactions, and sets attempts + 1 and nextRetryAt = now + `claimMs`, each conditional on what was read: a message goes to
 * one claimer only, and to another once `claimMs` have passed. One that has been claimed before, or is suspect,
 * needs a transaction of its own, and at most `repeatedLimit` of those are handed out; where there are more, others come in their stead. A message whose last claim ended without a word (neither settled, parked anew nor
 * given back) is handed out by itself, and only to a caller that `isAlone`; while one is among what is looked at, nobody else gets anything. `giveBack` undoes a claim
 * that did not run (attempts − 1, due at once, suspect where the claim says so) unless the message has changed since. `wake` finds messages in state `gap` or `behind` that are nevertheless next in line
 * (version ≤ position + 1) and older than `olderThanMs`, blocks their position and makes them due; it returns how many. `behind` only reads:
 * for each place, at most `limit` parked messages that stand right behind it without a hole, in state `gap` or `behind`, never claimed
 * and not suspect, in their order.
 */
export interface ParkedQueue {
  claimDue(request: ClaimRequest): Promise<readonly ParkedEvent[]>;
  behind(places: readonly AggregatePlace[], limit: number): Promise<readonly (readonly ParkedEvent[])[]>;
  giveBack(claimed: readonly ParkedEvent[]): Promise<void>;
  wake(request: { olderThanMs: number; limit: number }): Promise<number>;
}

/**
 * What is in whose hands, kept where a death does not reach it. `begin` records that `loop` (a receive loop, a lane of a history, a slot of parked events) of `owner` (unique per
 * process start) now works on these events, in place of what it recorded before, and returns those of them that stand under another
 * owner: unless they are settled, that owner gave them up, died with them, or has not finished. Records older than a day may go.
 */
export interface StartedRecords {
  begin(batch: { owner: string; loop: number; events: readonly EventId[] }): Promise<readonly EventId[]>;
}
