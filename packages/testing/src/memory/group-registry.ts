import type { GroupProducer, GroupStanding, SweepClaim } from '@nightporter/consumer';
import { countPublished, readPublished, readVersion } from './ledger.js';
import { toDatabase, type Network } from './network.js';
import type { DatabaseClock } from './outbox.js';
import type { RelayDatabase } from './relay-stores.js';

export interface RegisteredGroup {
  readonly topics: readonly string[];
  readonly floorMs: number;
  readonly state: 'bootstrapping' | 'live';
  readonly watermarkMs: number;
  readonly sweeper: { readonly owner: string; readonly untilMs: number } | null;
}

/** The producers' `groups`. */
export class MemoryGroupRegistry {
  readonly groups = new Map<string, RegisteredGroup>();
  /** Told of every watermark that was moved, in that moment. */
  onAdvanced: (group: string, toMs: number) => void = () => undefined;
  readonly #clock: DatabaseClock;

  constructor(clock: DatabaseClock) {
    this.#clock = clock;
  }

  /** From the beginning, or from now, for which the group's positions are set elsewhere. */
  register(
    group: string,
    { topics, from = 'beginning' }: { topics: readonly string[]; from?: 'beginning' | 'now' },
  ): void {
    const floorMs = this.#clock();
    const start =
      from === 'now'
        ? { state: 'live' as const, watermarkMs: floorMs }
        : { state: 'bootstrapping' as const, watermarkMs: 0 };
    this.groups.set(group, { topics, floorMs, ...start, sweeper: null });
  }

  claim(group: string, { durationMs, owner }: { owner: string; durationMs: number }): SweepClaim {
    const entry = this.groups.get(group);
    if (entry === undefined) return { kind: 'unregistered' };
    const { floorMs, state, sweeper, topics, watermarkMs } = entry;
    if (sweeper !== null && sweeper.owner !== owner && sweeper.untilMs > this.#clock()) return { kind: 'held' };
    this.groups.set(group, { ...entry, sweeper: { owner, untilMs: this.#clock() + durationMs } });
    return { kind: 'claimed', topics, watermarkMs, floorMs, state };
  }

  standing(group: string): GroupStanding | null {
    const entry = this.groups.get(group);
    if (entry === undefined) return null;
    const { state, topics, watermarkMs } = entry;
    return { state, topics, watermarkMs };
  }

  advance(group: string, { floorMs, toMs }: { toMs: number; floorMs: number }): void {
    const entry = this.groups.get(group);
    if (entry === undefined || entry.floorMs !== floorMs || entry.watermarkMs >= toMs) return;
    const state = toMs > entry.floorMs ? 'live' : entry.state;
    this.groups.set(group, { ...entry, watermarkMs: toMs, state });
    this.onAdvanced(group, toMs);
  }

  release(group: string, owner: string): void {
    const entry = this.groups.get(group);
    if (entry?.sweeper?.owner === owner) this.groups.set(group, { ...entry, sweeper: null });
  }
}

/** The producers of one cluster as a group reaches them through `network`. */
export function memoryProducer({ outbox, groups }: RelayDatabase, group: string, network: Network): GroupProducer {
  const call = <Result>(name: string, operation: () => Result): Promise<Result> =>
    network.call(name, operation, toDatabase(name));
  return {
    ledger: {
      readPublished: (request) => call('ledger.readPublished', () => readPublished(outbox, outbox.clock, request)),
      readVersions: (places) => call('ledger.readVersions', () => places.map((place) => readVersion(outbox, place))),
      countPublished: (afterMs) => call('ledger.countPublished', () => countPublished(outbox, afterMs)),
    },
    registry: {
      standing: () => call('registry.standing', () => groups.standing(group)),
      claim: (request) => call('registry.claim', () => groups.claim(group, request)),
      advance: (request) =>
        call('registry.advance', () => {
          groups.advance(group, request);
        }),
      release: (owner) =>
        call('registry.release', () => {
          groups.release(group, owner);
        }),
    },
  };
}
