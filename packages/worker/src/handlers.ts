import type { EventHandler, HandlerContext, Handlers, NewEvent } from '@nightporter/consumer';
import type { Catalogue, EventDefinition, EventEnvelope, EventTypeOf, NewestData } from '@nightporter/contracts';
import { NightporterError, aggregateKey, traceIdOf } from '@nightporter/protocol';
import type { Logger } from '@nightporter/runtime';
import type { ClientSession } from 'mongodb';

/** An event of the catalogue as its handler is given it: always in its newest version. */
export type EventOf<Events extends readonly EventDefinition[], Type extends EventTypeOf<Events>> = EventEnvelope<
  NewestData<Events, Type>
> & { readonly eventType: Type };

/** An event as a handler emits it. It is written in the newest version of its type. */
export type EmittedEvent<Events extends readonly EventDefinition[], Type extends EventTypeOf<Events>> = Omit<
  NewEvent,
  'eventType' | 'eventVersion' | 'payload'
> & { readonly eventType: Type; readonly payload: NewestData<Events, Type> };

/** Writes an event of the catalogue to the worker's own outbox, in the transaction of the handler. */
export type EmitOf<Events extends readonly EventDefinition[]> = <Type extends EventTypeOf<Events>>(
  event: EmittedEvent<Events, Type>,
) => Promise<void>;

/** Everything that a handler is given for one event. */
export interface ContextOf<Events extends readonly EventDefinition[], Type extends EventTypeOf<Events>> {
  readonly event: EventOf<Events, Type>;
  /** Write through this session only: the handler may run again when its transaction did not commit. */
  readonly session: ClientSession;
  /** Correlation, causation, tenant and trace of the event go along. */
  readonly emit: EmitOf<Events>;
  /** Names the event in every line. */
  readonly logger: Logger;
  /** Aborts when the time of the handler is up, or the worker stops. */
  readonly signal: AbortSignal;
  /** 1 at the first try. */
  readonly attempt: number;
}

/** Handlers by event type. A type without handler is settled as `ignored`. */
export type HandlersOf<Events extends readonly EventDefinition[]> = {
  readonly [Type in EventTypeOf<Events>]?: (context: ContextOf<Events, Type>) => Promise<void>;
};

/** A handler as the engine calls it, whatever its event type is. */
type AnyHandler = (context: HandlerContext<ClientSession> & { readonly logger: Logger }) => Promise<void>;

/** Told of each run of a handler. */
export type HandlerObserver = (run: {
  readonly eventType: string;
  readonly outcome: 'completed' | 'failed';
  readonly durationMs: number;
}) => void;

interface EngineHandlersOptions<Events extends readonly EventDefinition[]> {
  readonly catalogue: Catalogue<Events>;
  readonly topics: readonly string[];
  readonly logger: Logger;
  readonly handlerRan?: HandlerObserver;
}

/**
 * The handlers as the engine takes them. Refuses, with NP_CONFIG_INVALID, a handler that could never run: of a type that the catalogue
 * does not have, or whose topic is not subscribed to. A topic without any handler is only told: a group may well wish to know that
 * the events exist, but more often a handler was forgotten.
 */
export function engineHandlers<Events extends readonly EventDefinition[]>(
  handlers: HandlersOf<Events>,
  { catalogue, topics, logger, handlerRan }: EngineHandlersOptions<Events>,
): Handlers<ClientSession> {
  const engine: Record<string, EventHandler<ClientSession>> = {};
  for (const [type, handler] of Object.entries(handlers as Readonly<Record<string, AnyHandler | undefined>>)) {
    if (handler === undefined) continue;
    assertCanRun(type, { catalogue, topics });
    // Its data was read by the catalogue, which is what its type promises, before the engine calls it.
    engine[type] = timed(type, (context) => handler({ ...context, logger: loggerOf(context, logger) }), handlerRan);
  }
  for (const topic of topics) {
    const eventTypes = typesOn(topic, catalogue);
    if (eventTypes.some((type) => type in engine)) continue;
    logger.warn(
      { topic, eventTypes },
      'topic is subscribed to without any handler: all of its events are settled as ignored',
    );
  }
  return engine;
}

/** A handler whose time is up goes on until it notices: the run lasts as long. */
function timed(
  eventType: string,
  handler: EventHandler<ClientSession>,
  handlerRan: HandlerObserver = () => undefined,
): EventHandler<ClientSession> {
  return async (context) => {
    const startedAtMs = performance.now();
    let outcome: 'completed' | 'failed' = 'failed';
    try {
      await handler(context);
      outcome = 'completed';
    } finally {
      handlerRan({ eventType, outcome, durationMs: performance.now() - startedAtMs });
    }
  };
}

function typesOn(topic: string, { events }: Catalogue): readonly string[] {
  return [...new Set(events.filter((event) => event.topic === topic).map(({ type }) => type))];
}

function assertCanRun(type: string, { catalogue, topics }: { catalogue: Catalogue; topics: readonly string[] }): void {
  const definition = catalogue.find(type);
  if (definition === undefined) {
    const known = [...new Set(catalogue.events.map((event) => event.type))].join(', ');
    throw new NightporterError('NP_CONFIG_INVALID', `There is a handler for ${type}; the catalogue has ${known}.`);
  }
  if (topics.includes(definition.topic)) return;
  throw new NightporterError(
    'NP_CONFIG_INVALID',
    `There is a handler for ${type}, which travels on ${definition.topic}; subscribed to: ${topics.join(', ')}.`,
  );
}

function loggerOf({ event, attempt }: HandlerContext<ClientSession>, logger: Logger): Logger {
  const { eventId, eventType, aggregateVersion, correlationId } = event;
  const aggregate = aggregateKey(event);
  return logger.child({ eventId, eventType, aggregate, aggregateVersion, correlationId, attempt, ...traceIdOf(event) });
}
