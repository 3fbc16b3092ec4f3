import {
  ENVELOPE_BYTES_CEILING,
  ENVELOPE_BYTES_MAX_DEFAULT,
  NAME_LENGTH_MAX,
  inTrace,
  isName,
  shown,
  type Catalogue,
  type EventEnvelope,
  type EventHeaders,
} from '@nightporter/contracts';
import { NightporterError, type AggregateVersion, type EventId, type TraceContext } from '@nightporter/protocol';
import type { ClientSession, MongoClient } from 'mongodb';
import { createAttempt } from './attempt.js';
import { outboxCollections } from './collections.js';
import { ConflictLanes } from './conflict-lanes.js';
import type { DraftRules } from './draft.js';
import { headersCausedBy } from './emitter.js';
import { createOwnSessionEmit } from './own-session.js';
import { TransactionRun } from './run-transaction.js';
import { TransactionEvents } from './transaction-events.js';
import { askLedger } from './witness.js';
import { systemWorld, type OutboxWorld } from './world.js';

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
   * Unless given, correlationId is that of the first event in `transaction()`; for the first event, and for an event on a session
   * of your own, it is the event's id.
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
  /**
   * For how long the work may go on in all, its statements included: one that hangs is left, and the transaction rolled back. Without it, a
   * statement takes as long as the client waits for its socket. A commit that was begun is pursued all the same.
   */
  readonly workMs?: number;
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

/**
 * Follows transactions, for traces. `run` carries `transaction` out at once, and passes its outcome on; the events of the transaction
 * name the context that it is given. `parent` is that of the transaction's headers.
 */
export interface TransactionTracer {
  run<Result>(
    parent: Pick<EventHeaders, 'traceparent' | 'tracestate'>,
    transaction: (context: TraceContext) => Promise<Result>,
  ): Promise<Result>;
}

export interface OutboxOptions {
  readonly client: MongoClient;
  readonly database: string;
  /** The producing service; part of every aggregate's identity, never to be changed. */
  readonly source: string;
  readonly catalogue: Catalogue;
  /** Largest encoded envelope; 1 MiB unless given. */
  readonly envelopeBytesMax?: number;
  /** Without it, events name the trace of their transaction's headers. */
  readonly tracer?: TransactionTracer | null;
}

const RETRY_MS_DEFAULT = 30_000;

/**
 * The write side of one producer.
 * @throws NP_CONFIG_INVALID for a source or a limit out of range.
 */
export function createOutbox(options: OutboxOptions, world: OutboxWorld = systemWorld): Outbox {
  const { client, database, source, catalogue, tracer = null } = options;
  const rules: DraftRules = {
    source,
    catalogue,
    envelopeBytesMax: options.envelopeBytesMax ?? ENVELOPE_BYTES_MAX_DEFAULT,
  };
  checkRules(rules);
  const collections = outboxCollections(client, database);
  const underWay = new WeakMap<ClientSession, TransactionEvents>();
  const lanes = new ConflictLanes(world.clock);
  const emitOnOwn = createOwnSessionEmit({ collections, rules, world });

  /** A session of transaction() collects its events, also those that come by way of emit(session). */
  const emit = async (session: ClientSession, event: EmitRequest, headers?: EventHeaders): Promise<EmittedEvent> => {
    const events = underWay.get(session);
    return events === undefined ? emitOnOwn(session, event, headers ?? {}) : events.emit(event, headers);
  };

  const transaction: Outbox['transaction'] = async (
    work,
    { headers = {}, retryMs = RETRY_MS_DEFAULT, workMs } = {},
  ) => {
    const idOf = stableIds(world.newEventId);
    const eventsOn = (session: ClientSession): TransactionEvents => {
      const { today } = world;
      const events = new TransactionEvents({ session, collections, rules, headers, idOf, today });
      underWay.set(session, events);
      return events;
    };
    const run = new TransactionRun({
      begin: () => createAttempt({ client, work, eventsOn }),
      askLedger: (receipts) => askLedger(collections, receipts),
      world,
      lanes,
      retryMs,
      ...(workMs === undefined ? {} : { workMs }),
    });
    return run.run();
  };

  return {
    transaction: (work, options = {}) => {
      if (tracer === null) return transaction(work, options);
      const { headers = {} } = options;
      return tracer.run(headers, (context) => transaction(work, { ...options, headers: inTrace(headers, context) }));
    },
    emit: (session, event) => emit(session, event),
    emitter: () => (session, cause) => async (event) => {
      await emit(session, event, headersCausedBy(cause));
    },
  };
}

/** The n-th event keeps its id over all runs of one transaction, so that a run that landed unseen is met, not doubled. */
function stableIds(newEventId: () => EventId): (order: number) => EventId {
  const ids: EventId[] = [];
  return (order) => {
    const id = ids[order] ?? newEventId();
    ids[order] = id;
    return id;
  };
}

function checkRules({ source, envelopeBytesMax }: DraftRules): void {
  if (!isName(source)) {
    throw new NightporterError(
      'NP_CONFIG_INVALID',
      `source is ${shown(source)}; accepted: 1 to ${NAME_LENGTH_MAX} characters, a letter first, then letters, digits, dot, underscore, hyphen.`,
    );
  }
  if (Number.isSafeInteger(envelopeBytesMax) && envelopeBytesMax >= 1 && envelopeBytesMax <= ENVELOPE_BYTES_CEILING)
    return;
  throw new NightporterError(
    'NP_CONFIG_INVALID',
    `envelopeBytesMax is ${shown(envelopeBytesMax)}; accepted: 1 to ${ENVELOPE_BYTES_CEILING} bytes.`,
  );
}
