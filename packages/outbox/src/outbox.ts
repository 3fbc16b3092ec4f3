import type { Catalogue, EventEnvelope, EventHeaders } from '@nightporter/contracts';
import { NightporterError, type AggregateVersion, type EventId } from '@nightporter/protocol';
import type { ClientSession, MongoClient } from 'mongodb';

/** An event as the business code writes it. Identity, version, topic and digest are added. */
export interface EmitRequest {
  readonly aggregateType: string;
  /** 1 to 256 characters, no control characters, no lone surrogates. */
  readonly aggregateId: string;
  readonly eventType: string;
  /** The latest in the catalogue unless given. */
  readonly eventVersion?: number;
  /** Plain JSON: see `assertPayload`. It is copied at once; later changes to the object change nothing. */
  readonly payload: unknown;
  /** The version that the aggregate must have before this event, 0 for a new one. */
  readonly expectedVersion?: number;
  /** Message group, at most 63 bytes of UTF-8. Fixed by the first event of an aggregate; unless given, made of its identity. */
  readonly eventKey?: string;
  /**
   * A traceparent or tracestate that is malformed is left out, as W3C Trace Context asks; any other malformed header is refused.
   * Unless given, correlationId is that of the first event of the transaction, and of the first event its own id.
   */
  readonly headers?: EventHeaders;
  /** When it happened; now unless given. */
  readonly occurredAt?: Date;
}

/** What became of an emitted event, once its transaction commits. */
export interface EmittedEvent {
  readonly eventId: EventId;
  readonly aggregateVersion: AggregateVersion;
  readonly eventVersion: number;
  readonly topic: string;
  readonly eventKey: string;
  readonly occurredAt: Date;
  readonly correlationId: string;
}

export interface TransactionScope {
  /** Pass it to every read and write that belongs to the transaction. */
  readonly session: ClientSession;
  /**
   * Adds an event to the transaction. A refused emit fails the whole transaction, even where the error was caught: its state
   * change would be committed without its event.
   */
  readonly emit: (event: EmitRequest) => Promise<EmittedEvent>;
}

export interface TransactionOptions {
  /** Headers of every event that does not bring its own. */
  readonly headers?: EventHeaders;
  /** For how long conflicts and unavailability are met with another try. */
  readonly retryMs?: number;
}

/** An event that a handler emits: as {@link EmitRequest}. */
export type CausedEmit = (event: EmitRequest) => Promise<void>;

export interface Outbox {
  /**
   * Runs `work` in one transaction and commits it with its events. `work` may run several times (conflicts, fail-overs): outside the
   * session it must have no effect. The n-th event of every run has the same id.
   *
   * Rejects with what `work` threw (nothing is committed), with NP_TRANSACTION_CONFLICT or NP_STORE_UNAVAILABLE when the time for
   * retries is over. Only an NP_STORE_UNAVAILABLE that says so leaves open whether the transaction committed.
   */
  transaction<Result>(
    work: (scope: TransactionScope) => Promise<Result>,
    options?: TransactionOptions,
  ): Promise<Result>;
  /**
   * Writes an event in a transaction that the caller has started on `session`, with writes of its own; the caller commits, and retries.
   * @throws NP_NO_TRANSACTION outside a transaction.
   */
  emit(session: ClientSession, event: EmitRequest): Promise<EmittedEvent>;
  /** The emitter of a consumer: what a handler emits carries the correlation, tenant and trace of its cause, and names it. */
  emitter(): (session: ClientSession, cause: EventEnvelope) => CausedEmit;
}

export interface OutboxOptions {
  readonly client: MongoClient;
  readonly database: string;
  /** The producing service; part of every aggregate's identity, never to be changed. */
  readonly source: string;
  readonly catalogue: Catalogue;
  /** Largest encoded envelope; 1 MiB unless given. */
  readonly envelopeBytesMax?: number;
}

export function createOutbox(options: OutboxOptions): Outbox {
  throw new NightporterError('NP_INTERNAL', `The outbox of ${options.source} is still being written.`);
}
