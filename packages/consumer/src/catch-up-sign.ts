import type { GroupProducer } from './ledger-ports.js';

/** What a producer's entry of the group says. */
interface Entry {
  readonly state: 'bootstrapping' | 'live';
  readonly topics?: readonly string[] | undefined;
}

interface Known {
  readonly state: Entry['state'] | null;
  /** Those whose history is being walked. */
  readonly topics: ReadonlySet<string>;
  readonly lastOnMs: number;
}

const NOTHING: Known = { state: null, topics: new Set(), lastOnMs: Number.NEGATIVE_INFINITY };

/**
 * Which topics have a history that the group is still walking, as far as this member knows. What comes too early there need not be parked:
 * the walk comes to it, since the watermark passes nothing that is neither settled nor parked.
 */
export class CatchUpSign {
  readonly #known = new Map<GroupProducer, Known>();

  /** Null where there is no entry. */
  learn(producer: GroupProducer, entry: Entry | null, nowMs: number): void {
    const { lastOnMs } = this.#of(producer);
    const isOn = entry?.state === 'bootstrapping';
    this.#known.set(producer, {
      state: entry?.state ?? null,
      topics: new Set(isOn ? entry.topics : []),
      lastOnMs: isOn ? nowMs : lastOnMs,
    });
  }

  /** This member's walk has come to its end: until the next one nothing may be left to it, though the group is not live yet. */
  rest(producer: GroupProducer): void {
    this.#known.set(producer, { ...this.#of(producer), topics: new Set() });
  }

  isOn(topic: string): boolean {
    return [...this.#known.values()].some(({ topics }) => topics.has(topic));
  }

  isLive(producer: GroupProducer): boolean {
    return this.#of(producer).state === 'live';
  }

  /** Whether it was on less than `withinMs` ago: another member, who learns later, may have left something to the walk just now. */
  wasOn(producer: GroupProducer, { nowMs, withinMs }: { nowMs: number; withinMs: number }): boolean {
    return nowMs - this.#of(producer).lastOnMs < withinMs;
  }

  #of(producer: GroupProducer): Known {
    return this.#known.get(producer) ?? NOTHING;
  }
}
