import type { EventId } from '@nightporter/protocol';
import type { Knobs } from './knobs.js';
import type { SeededRandom } from './random.js';

/** What a handler of one group will do with one event; each count goes down with every run that it spoils. */
export interface HandlerPlan {
  failures: number;
  crashes: number;
  hangs: number;
}

/** What will happen to one event on its way. */
export interface EventPlan {
  /** Sends of the original that the broker will refuse for good. */
  permanentFailures: number;
  /** Where set, only this relay process meets them, and for ever. */
  refusedOnlyFrom: string | null;
  readonly handlers: ReadonlyMap<string, HandlerPlan>;
}

const FOR_EVER = 999;

/** The plans of a history, made as events commit. */
export class Plans {
  readonly #plans = new Map<EventId, EventPlan>();
  readonly #random: SeededRandom;
  readonly #knobs: Knobs;
  readonly #groups: readonly string[];

  constructor(random: SeededRandom, knobs: Knobs, groups: readonly string[]) {
    this.#random = random;
    this.#knobs = knobs;
    this.#groups = groups;
  }

  of(eventId: EventId): EventPlan {
    const known = this.#plans.get(eventId);
    if (known !== undefined) return known;
    const plan = this.#draw();
    this.#plans.set(eventId, plan);
    return plan;
  }

  handler(eventId: EventId, group: string): HandlerPlan {
    return this.of(eventId).handlers.get(group) ?? { failures: 0, crashes: 0, hangs: 0 };
  }

  /** The event can be sent from now on. */
  mendSends(eventId: EventId): void {
    const plan = this.of(eventId);
    plan.permanentFailures = 0;
    plan.refusedOnlyFrom = null;
  }

  /** The event can be handled from now on. */
  mendHandler(eventId: EventId, group: string): void {
    Object.assign(this.handler(eventId, group), { failures: 0, crashes: 0, hangs: 0 });
  }

  #draw(): EventPlan {
    const random = this.#random;
    const times = (isOn: boolean, probability: number): number =>
      isOn && random.chance(probability) ? random.pick([1, 2, 4, FOR_EVER]) : 0;
    const permanentFailures = times(this.#knobs.permanentFailures, 0.12);
    const isSelective = permanentFailures > 0 && random.chance(0.3);
    return {
      permanentFailures,
      refusedOnlyFrom: isSelective ? random.pick(['relay-0', 'relay-1']) : null,
      handlers: new Map(
        this.#groups.map((group) => [
          group,
          {
            failures: times(this.#knobs.poison, 0.1),
            crashes: times(this.#knobs.crashPoison, 0.05),
            hangs: times(this.#knobs.hangPoison, 0.04),
          },
        ]),
      ),
    };
  }
}
