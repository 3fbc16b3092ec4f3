import { randomInt } from 'node:crypto';

/** Chance from a seed: the same seed makes the same choices in the same order. */
export interface Seeded {
  /** Uniform in [0, 1). */
  next(): number;
  /** Uniform from 0 to `below` − 1. */
  integer(below: number): number;
  pick<Item>(items: readonly [Item, ...Item[]]): Item;
  /** A chance of its own, so that what one client draws does not depend on how fast another is. */
  fork(): Seeded;
}

/** mulberry32: small, and good enough to choose what to do next. */
export function seeded(seed: number): Seeded {
  let state = seed >>> 0;
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  const integer = (below: number): number => Math.floor(next() * below);
  return {
    next,
    integer,
    pick: (items) => items[integer(items.length)] ?? items[0],
    fork: () => seeded(Math.floor(next() * 2 ** 32)),
  };
}

/** `NIGHTPORTER_SEED`, to see a run's choices again, or a new one. */
export function seedOfRun(): number {
  const given = process.env['NIGHTPORTER_SEED'];
  return given === undefined || given === '' ? randomInt(2 ** 31) : Number(given);
}
