import type { Difference } from './contract.js';

/** Differences as they are found: the first ones are kept, all are counted. */
export class Findings {
  readonly #max: number;
  readonly #kept: Difference[] = [];
  #total = 0;

  constructor(max: number) {
    this.#max = max;
  }

  add(difference: Difference): void {
    this.#total += 1;
    if (this.#kept.length < this.#max) this.#kept.push(difference);
  }

  get kept(): readonly Difference[] {
    return this.#kept;
  }

  get total(): number {
    return this.#total;
  }
}
