interface Version<Value> {
  readonly seq: number;
  readonly value: Value | undefined;
}

/** Documents with their history: a transaction reads them as they were when it began, and learns at its end what has changed since. */
export class VersionedStore<Value> {
  readonly #versions = new Map<string, Version<Value>[]>();

  /** The document as of `seq`. */
  at(key: string, seq: number): Value | undefined {
    return this.#versions.get(key)?.findLast((version) => version.seq <= seq)?.value;
  }

  latest(key: string): Value | undefined {
    return this.#versions.get(key)?.at(-1)?.value;
  }

  changedSince(key: string, seq: number): boolean {
    return (this.#versions.get(key)?.at(-1)?.seq ?? 0) > seq;
  }

  put(key: string, value: Value | undefined, seq: number): void {
    const versions = this.#versions.get(key);
    if (versions === undefined) this.#versions.set(key, [{ seq, value }]);
    else versions.push({ seq, value });
  }

  /** The living documents, in the order in which they were first written. */
  *entries(): Generator<readonly [string, Value]> {
    for (const [key, versions] of this.#versions) {
      const value = versions.at(-1)?.value;
      if (value !== undefined) yield [key, value];
    }
  }
}
