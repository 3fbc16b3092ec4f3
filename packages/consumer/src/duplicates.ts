import { Wakeup, sleep, type EventId } from '@nightporter/protocol';
import { storeFailed, type Engine } from './engine.js';
import type { EventWork, Work } from './incoming.js';

/** Calls to a filter that nobody waits for, at most; a hint too many is dropped. */
const REMEMBERING_MAX = 100;

/** Stands between the engine and its filter, which may be slow, wrong or away: then it is not asked for a while. */
export class FilterGuard {
  #quietUntil = Number.NEGATIVE_INFINITY;
  #remembering = 0;

  /** What the filter takes for settled; nothing where it does not answer in time. */
  async seen<Session>(engine: Engine<Session>, events: readonly EventId[]): Promise<ReadonlySet<EventId>> {
    const found = await this.#ask(engine, 'seen', async (filter) => setOf(await filter.seen(events)));
    return found ?? new Set();
  }

  /** Tells the filter, and does not wait for it. */
  remember<Session>(engine: Engine<Session>, events: readonly EventId[]): void {
    if (events.length === 0 || engine.ports.duplicates === undefined || this.#remembering >= REMEMBERING_MAX) return;
    this.#remembering += 1;
    this.#ask(engine, 'remember', (filter) => filter.remember(events))
      .finally(() => {
        this.#remembering -= 1;
      })
      .catch(engine.fail);
  }

  async #ask<Session, Answer>(
    engine: Engine<Session>,
    operation: 'seen' | 'remember',
    call: (filter: NonNullable<Engine<Session>['ports']['duplicates']>['filter']) => Promise<Answer>,
  ): Promise<Answer | null> {
    const { options, ports } = engine;
    const { clock, duplicates } = ports;
    if (duplicates === undefined || clock.now() < this.#quietUntil) return null;
    const answered = new Wakeup();
    // Called inside of a promise, so that whatever it throws is caught below, and also when nobody waits any more.
    const answer = Promise.resolve()
      .then(() => call(duplicates.filter))
      .then(
        (value) => ({ kind: 'answered', value }) as const,
        (error: unknown) => ({ kind: 'failed', error }) as const,
      )
      .finally(() => {
        answered.ringForGood();
      });
    const late = new Error(`The duplicate filter did not answer within filterMs (${options.filterMs} ms).`);
    const result = await Promise.race([
      answer,
      sleep(clock, options.filterMs, answered).then(() =>
        answered.rungForGood ? answer : ({ kind: 'failed', error: late } as const),
      ),
    ]);
    if (result.kind === 'answered') return result.value;
    this.#quietUntil = clock.now() + options.filterPauseMs;
    engine.tell({ kind: 'filter-unavailable', operation, error: result.error });
    return null;
  }
}

/** A filter of somebody else's must not end the worker by what it answers. */
function setOf(found: unknown): ReadonlySet<EventId> {
  if (found instanceof Set) return found as ReadonlySet<EventId>;
  const what = Array.isArray(found) ? 'an array' : found === null ? 'null' : typeof found;
  throw new Error(`The duplicate filter answered ${what}; accepted: a Set of event ids.`);
}

/**
 * Those of a batch that the filter takes for settled, and that the inbox confirms: they need no transaction. Everything else goes the ordinary
 * way, where the inbox is asked in any case.
 */
export async function confirmedRepeats<Session>(
  engine: Engine<Session>,
  works: readonly Work[],
): Promise<ReadonlySet<Work>> {
  const { duplicates } = engine.ports;
  if (duplicates === undefined) return new Set();
  const events = works.filter((work): work is EventWork => work.kind === 'event');
  const seen = await engine.filter.seen(
    engine,
    events.map((work) => work.event.envelope.eventId),
  );
  const believed = events.filter((work) => seen.has(work.event.envelope.eventId));
  if (believed.length === 0) return new Set();
  try {
    const sure = await duplicates.repeats.count(believed.map((work) => work.event));
    engine.circuit.succeeded();
    const confirmed = believed.filter((work) => sure.has(work.event.envelope.eventId));
    engine.tell({ kind: 'filtered', confirmed: confirmed.length, refuted: believed.length - confirmed.length });
    for (const { event } of confirmed) engine.tell({ kind: 'duplicate', event });
    return new Set(confirmed);
  } catch (error) {
    storeFailed(engine, 'count-repeats', error);
    return new Set();
  }
}

/** How many of a batch, from the first on, have a durable outcome, when `settled` of those that are no repeats have one. */
export function durablePrefix(
  works: readonly Work[],
  { repeats, settled }: { repeats: ReadonlySet<Work>; settled: number },
): number {
  let left = settled;
  for (const [index, work] of works.entries()) {
    if (repeats.has(work)) continue;
    if (left === 0) return index;
    left -= 1;
  }
  return works.length;
}
