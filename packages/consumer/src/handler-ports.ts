import type { EventEnvelope, JsonValue } from '@nightporter/contracts';

/** An event as a handler writes it; identity, version, correlation and causation are added. */
export interface NewEvent {
  readonly aggregateType: string;
  readonly aggregateId: string;
  readonly eventType: string;
  readonly eventVersion?: number;
  readonly payload: JsonValue;
}

export type Emit = (event: NewEvent) => Promise<void>;

/** Writes events to the consumer's own outbox in the session's transaction, caused by `cause`. */
export type Emitter<Session> = (session: Session, cause: EventEnvelope) => Emit;

export interface HandlerContext<Session, Event extends EventEnvelope = EventEnvelope> {
  readonly event: Event;
  /** Write through this session only: the handler may run again when its transaction did not commit. */
  readonly session: Session;
  readonly emit: Emit;
  readonly signal: AbortSignal;
  /** 1 at the first try. */
  readonly attempt: number;
}

export type EventHandler<Session> = (context: HandlerContext<Session>) => Promise<void>;

/** Handlers by event type. A type without handler is settled as `ignored`. */
export type Handlers<Session> = Readonly<Record<string, EventHandler<Session>>>;
