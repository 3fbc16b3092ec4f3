import type { Random } from '@nightporter/protocol';

/** Every choice of a history comes from generators like this one, so that a seed replays it. */
export interface SeededRandom extends Random {
  chance(probability: number): boolean;
  between(min: number, max: number): number;
  /** 0 … count − 1. */
  integer(count: number): number;
  pick<Option>(options: readonly [Option, ...Option[]]): Option;
  /** A generator of its own, so that more choices here do not shift the choices there. */
  fork(): SeededRandom;
}

/** mulberry32. */
export function seededRandom(seed: number): SeededRandom {
  let state = (Math.imul(seed, 2654435761) + 12345) >>> 0;
  const next = (): number => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
  return Object.assign(next, {
    chance: (probability: number) => next() < probability,
    between: (min: number, max: number) => min + next() * (max - min),
    integer: (count: number) => Math.floor(next() * count),
    pick: <Option>(options: readonly [Option, ...Option[]]): Option =>
      options[Math.floor(next() * options.length)] ?? options[0],
    fork: () => seededRandom(Math.floor(next() * 4294967296)),
  });
}
