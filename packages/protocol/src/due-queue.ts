interface Due<T> {
  readonly atMs: number;
  /** Keeps what is due at one moment in the order of arrival. */
  readonly order: number;
  readonly value: T;
}

/** What is to happen later, earliest first (a binary heap). */
export class DueQueue<T> {
  #heap: Due<T>[] = [];
  #pushed = 0;

  get size(): number {
    return this.#heap.length;
  }

  get nextAtMs(): number | null {
    return this.#heap[0]?.atMs ?? null;
  }

  push(atMs: number, value: T): void {
    this.#pushed += 1;
    const due = { atMs, order: this.#pushed, value };
    let index = this.#heap.length;
    this.#heap.push(due);
    while (index > 0) {
      const parent = (index - 1) >> 1;
      const above = this.#heap[parent];
      if (above === undefined || !isEarlier(due, above)) break;
      this.#heap[index] = above;
      index = parent;
    }
    this.#heap[index] = due;
  }

  /** Takes the earliest that is due at `nowMs`. */
  popDue(nowMs: number): T | undefined {
    const first = this.#heap[0];
    if (first === undefined || first.atMs > nowMs) return undefined;
    const moved = this.#heap.pop();
    if (moved !== undefined && this.#heap.length > 0) this.#sink(moved);
    return first.value;
  }

  #sink(moved: Due<T>): void {
    let index = 0;
    for (;;) {
      const left = this.#heap[2 * index + 1];
      const right = this.#heap[2 * index + 2];
      if (left === undefined) break;
      const rightIsFirst = right !== undefined && isEarlier(right, left);
      const child = rightIsFirst ? right : left;
      if (!isEarlier(child, moved)) break;
      this.#heap[index] = child;
      index = 2 * index + (rightIsFirst ? 2 : 1);
    }
    this.#heap[index] = moved;
  }
}

function isEarlier<T>(one: Due<T>, other: Due<T>): boolean {
  return one.atMs < other.atMs || (one.atMs === other.atMs && one.order < other.order);
}
