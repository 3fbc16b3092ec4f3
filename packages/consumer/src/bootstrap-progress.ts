import type { Engine } from './engine.js';
import type { GroupProducer } from './ledger-ports.js';
import { ledgerFailed } from './ledger-work.js';

/** How often it is told. */
const EVERY_MS = 5_000;

/**
 * How a group that catches up with its history gets on with one producer, for people who wait: told at the start, every few seconds, and once
 * the group is live. Counted from where this member began, since another may have come so far.
 */
export class BootstrapProgress {
  #begun: { readonly atMs: number; readonly about: number | null; readonly topics: readonly string[] } | null = null;
  #walked = 0;
  #toldAtMs = 0;

  /** The group is found to be bootstrapping, at the beginning of a page. */
  async begin<Session>(
    engine: Engine<Session>,
    { ledger }: GroupProducer,
    { fromMs, topics }: { topics: readonly string[]; fromMs: number },
  ): Promise<void> {
    if (this.#begun !== null) return;
    let about: number | null = null;
    try {
      about = (await ledger.countPublished?.(fromMs)) ?? null;
    } catch (error) {
      // Nobody waits for a number.
      ledgerFailed(engine, 'count', error);
    }
    const atMs = engine.ports.clock.now();
    this.#begun = { atMs, about, topics };
    this.#walked = 0;
    this.#tell(engine, fromMs);
  }

  /** A page is through: all of its rows are settled or parked. */
  walked<Session>(engine: Engine<Session>, page: { rows: number; toMs: number }): void {
    if (this.#begun === null) return;
    this.#walked += page.rows;
    if (engine.ports.clock.now() - this.#toldAtMs >= EVERY_MS) this.#tell(engine, page.toMs);
  }

  /** The group is live, or another member has taken the walk over. */
  end<Session>(engine: Engine<Session>, how: 'live' | 'taken-over'): void {
    if (this.#begun === null) return;
    const { atMs, topics } = this.#begun;
    const tookMs = engine.ports.clock.now() - atMs;
    engine.tell({ kind: 'bootstrap-ended', how, topics, walked: this.#walked, tookMs });
    this.#begun = null;
  }

  #tell<Session>(engine: Engine<Session>, watermarkMs: number): void {
    if (this.#begun === null) return;
    const { about, atMs, topics } = this.#begun;
    const walked = this.#walked;
    this.#toldAtMs = engine.ports.clock.now();
    const seconds = (this.#toldAtMs - atMs) / 1_000;
    const perSecond = seconds > 0 ? Math.round(walked / seconds) : 0;
    engine.tell({ kind: 'bootstrapping', topics, walked, about, perSecond, watermarkMs });
  }
}
