import { askLedgers } from './ask-ledgers.js';
import type { Engine } from './engine.js';
import { classify } from './failure.js';
import type { EventWork, Work } from './incoming.js';

const NONE: ReadonlySet<Work> = new Set();

/**
 * The walk of a history comes to what stands behind it, with its predecessors and in batches: parked it would hold up the
 * batches of its aggregate. Only what the ledger has as it came: what only the broker has is parked, whatever the reason.
 */
export class LeftToLedger<Session> {
  readonly #engine: Engine<Session>;
  readonly #works: readonly Work[];
  #known: ReadonlySet<Work> | null = null;

  constructor(engine: Engine<Session>, works: readonly Work[]) {
    this.#engine = engine;
    this.#works = works;
  }

  /** Whether a message that came too early need not be parked. The ledger is asked for all of the transaction at the first. */
  async has(work: EventWork): Promise<boolean> {
    if (!this.#mayBe(work)) return false;
    this.#known ??= await this.#ask();
    return this.#known.has(work);
  }

  #mayBe(work: Work): work is EventWork {
    if (work.kind !== 'event' || work.isFromLedger || work.claim !== null || work.content.kind === 'defect')
      return false;
    return this.#engine.catchUp.isOn(work.event.topic);
  }

  async #ask(): Promise<ReadonlySet<Work>> {
    const works = this.#works.filter((work) => this.#mayBe(work));
    const places = works.map(({ event: { aggregate, envelope } }) => ({
      aggregate,
      version: envelope.aggregateVersion,
      eventId: envelope.eventId,
    }));
    const producers = this.#engine.ports.ledgerSweep?.producers ?? [];
    try {
      const answered = await askLedgers(producers, places);
      const isAsItCame = ({ event }: EventWork, index: number): boolean => {
        const answer = answered[index]?.answer;
        return answer?.kind === 'published' && answer.event.digest === event.digest;
      };
      return new Set(works.filter(isAsItCame));
    } catch (error) {
      if (classify(error) === 'broken') throw error;
      // Parked, they are safe either way; that the ledger is away is told by whoever walks it. Nothing is left to a walk that cannot go on.
      for (const producer of producers) this.#engine.catchUp.rest(producer);
      return NONE;
    }
  }
}
