/** Remembers the ids added last: at least `atLeast` of them, and at most twice as many. */
export class RecentIds<Id> {
  readonly #atLeast: number;
  #older = new Set<Id>();
  #newer = new Set<Id>();

  constructor(atLeast: number) {
    this.#atLeast = atLeast;
  }

  has(id: Id): boolean {
    return this.#newer.has(id) || this.#older.has(id);
  }

  add(id: Id): void {
    this.#newer.add(id);
    if (this.#newer.size < this.#atLeast) return;
    this.#older = this.#newer;
    this.#newer = new Set();
  }
}
