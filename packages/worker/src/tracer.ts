import type {
  ConsumerEvent,
  ConsumerTracer,
  HandlerTrace,
  IncomingEvent,
  TransactionEnd,
  TransactionTrace,
} from '@nightporter/consumer';
import { isNightporterError } from '@nightporter/protocol';
import {
  errorTypeOf,
  eventAttributes,
  messagingAttributes,
  type ActiveSpan,
  type SpanAttributes,
  type Tracing,
} from '@nightporter/runtime';

/** How an event, or a try of it, ended; the value of `nightporter.outcome`. */
type Outcome =
  'applied' | 'failed' | 'rolled-back' | 'unknown' | 'duplicate' | 'skipped' | 'gap' | 'behind' | 'retry' | 'dead';

/**
 * The spans of a consumer group.
 *
 * `process <topic>` for every run of a handler, below the send that brought the event. It ends with the transaction, since only that
 * commits the effect: it says `applied` at most once for an event. A transaction of several messages has a span of its own, `commit <group>`,
 * which is nobody's child: it and the runs in it link to each other.
 *
 * What was decided without a handler and is of interest to whoever follows an event is a moment: `discard` of a duplicate, `park`, `skip`.
 */
export function createConsumerTracer(
  tracing: Tracing,
  group: string,
): { readonly tracer: ConsumerTracer; readonly observe: (event: ConsumerEvent) => void } {
  return {
    tracer: { transaction: (messages) => transactionTrace({ tracing, group, messages }) },
    observe: (event) => {
      const moment = momentOf(event);
      if (moment !== null) tellMoment(moment, { tracing, group });
    },
  };
}

interface Place {
  readonly tracing: Tracing;
  readonly group: string;
}

function transactionTrace({ tracing, group, messages }: Place & { readonly messages: number }): TransactionTrace {
  const runs: HandlerRunTrace[] = [];
  let together: ActiveSpan | null = null;
  return {
    handling: ({ event, attempt }) => {
      if (messages > 1) together ??= commitSpan({ tracing, group, messages });
      const span = processSpan(event, { tracing, group, attempt, together });
      together?.link(span.context);
      const run = new HandlerRunTrace(span);
      runs.push(run);
      return run;
    },
    ended: (end) => {
      for (const run of runs) run.ended(end);
      if (together === null) return;
      if (end.kind === 'failed') together.fail(errorTypeOf(end.error));
      together.end();
    },
  };
}

class HandlerRunTrace implements HandlerTrace {
  readonly #span: ActiveSpan;
  #hasFailed = false;

  constructor(span: ActiveSpan) {
    this.#span = span;
  }

  get context() {
    return this.#span.context;
  }

  async run(handler: () => Promise<void>): Promise<void> {
    try {
      await this.#span.run(handler);
      this.#span.event('handler returned');
    } catch (error) {
      this.#hasFailed = true;
      this.#span.fail(errorTypeOf(error));
      throw error;
    }
  }

  ended(end: TransactionEnd): void {
    const outcome = this.#outcomeOf(end);
    this.#span.set({ 'nightporter.outcome': outcome });
    // What the database did to it is told by its code, not by the class of the driver's error that the handler saw.
    if (end.kind === 'failed' && outcome !== 'failed') this.#span.fail(errorTypeOf(end.error));
    this.#span.end();
  }

  #outcomeOf(end: TransactionEnd): Outcome {
    if (end.kind === 'committed') return 'applied';
    const isAway = isNightporterError(end.error, 'NP_STORE_UNAVAILABLE');
    const isDatabases = isAway || isNightporterError(end.error, 'NP_TRANSACTION_CONFLICT');
    if (this.#hasFailed) return isDatabases ? 'rolled-back' : 'failed';
    // The answer to the commit may have been lost; then the event comes again, and is found to be a duplicate.
    return isAway ? 'unknown' : 'rolled-back';
  }
}

function commitSpan({ tracing, group, messages }: Place & { readonly messages: number }): ActiveSpan {
  const attributes = messagingAttributes({ name: 'commit', topic: undefined, group });
  return tracing.start({
    name: `commit ${group}`,
    kind: 'internal',
    attributes: { ...attributes, 'messaging.batch.message_count': messages },
  });
}

function processSpan(
  event: IncomingEvent,
  { tracing, group, attempt, together }: Place & { readonly attempt: number; readonly together: ActiveSpan | null },
): ActiveSpan {
  return tracing.start({
    name: `process ${event.topic}`,
    kind: 'consumer',
    parent: sentIn(event),
    links: [...createdIn(event), ...(together === null ? [] : [together.context])],
    attributes: {
      ...messagingAttributes({ name: 'process', type: 'process', topic: event.topic, group }),
      ...factsOf(event),
      'nightporter.attempt': attempt,
    },
  });
}

/** What was decided about an event, without a handler. */
interface Moment {
  readonly name: 'discard' | 'park' | 'skip';
  readonly event: IncomingEvent;
  readonly outcome: Outcome;
  /** Why it is dead. */
  readonly error: string | null;
}

function momentOf(told: ConsumerEvent): Moment | null {
  if (told.kind === 'duplicate') return { name: 'discard', event: told.event, outcome: 'duplicate', error: null };
  if (told.kind === 'parked') {
    const { event, state, failure } = told;
    return { name: 'park', event, outcome: state, error: state === 'dead' ? (failure?.code ?? '_OTHER') : null };
  }
  if (told.kind === 'settled' && told.outcome === 'skipped')
    return { name: 'skip', event: told.event, outcome: 'skipped', error: null };
  return null;
}

function tellMoment({ name, event, outcome, error }: Moment, { tracing, group }: Place): void {
  const span = tracing.start({
    name: `${name} ${event.topic}`,
    kind: 'internal',
    parent: sentIn(event),
    links: createdIn(event),
    attributes: {
      ...messagingAttributes({ name, topic: event.topic, group }),
      ...factsOf(event),
      'nightporter.outcome': outcome,
    },
  });
  if (error !== null) span.fail(error);
  span.end();
}

/** The send that brought it; where the ledger did, or the send was not traced, what wrote it. */
function sentIn({ envelope, sentIn: sent }: IncomingEvent) {
  return { traceparent: sent ?? envelope.traceparent, tracestate: envelope.tracestate };
}

/** What wrote it, where that is not the parent already. */
function createdIn({ envelope, sentIn: sent }: IncomingEvent) {
  return sent === undefined ? [] : [envelope];
}

function factsOf({ aggregate, envelope, messageId }: IncomingEvent): SpanAttributes {
  const { aggregateVersion, correlationId, eventId, eventType, eventVersion } = envelope;
  return eventAttributes({
    eventId,
    eventType,
    eventVersion,
    aggregate,
    aggregateVersion,
    correlationId,
    messageId,
    messageGroup: undefined,
  });
}
