/** Documents by exact keys, in bulk. */
import type { Collection, Document, Filter } from 'mongodb';

/** SecantusDB compares each document that it finds with every key of a statement, so that many keys in one cost their square. */
const KEYS_OF_A_STATEMENT = 40;
const STATEMENTS_AT_ONCE = 4;

interface Lookup<Key> {
  readonly keys: readonly Key[];
  /** What finds the documents of so many keys. */
  readonly filterOf: (keys: readonly Key[]) => object;
  /** Fields that are read; without it all. */
  readonly projection?: Document;
}

export async function lookUp<Part extends Document, Key>(
  // Whatever its documents are: a part of them is read.
  documents: Pick<Collection, 'find'>,
  { filterOf, keys, projection }: Lookup<Key>,
): Promise<readonly Part[]> {
  const parts = partsOf(keys);
  const found: Part[] = [];
  for (const some of partsOf(parts, STATEMENTS_AT_ONCE)) {
    const answers = some.map((part) =>
      documents
        .find<Part>(filterOf(part) as Filter<Document>, projection === undefined ? {} : { projection })
        .toArray(),
    );
    found.push(...(await Promise.all(answers)).flat());
  }
  return found;
}

/** Documents by their `_id`. */
export async function byIds<Part extends { readonly _id: string }>(
  documents: Collection<Part>,
  ids: Iterable<Part['_id']>,
  projection?: Document,
): Promise<ReadonlyMap<Part['_id'], Part>> {
  const found = await lookUp<Part, string>(documents as unknown as Collection, {
    keys: [...new Set<string>(ids)],
    filterOf: (keys) => ({ _id: { $in: keys } }),
    ...(projection === undefined ? {} : { projection }),
  });
  return new Map(found.map((document) => [document._id, document]));
}

/** As many keys as one statement may have. */
export function partsOf<Item>(items: readonly Item[], size = KEYS_OF_A_STATEMENT): readonly (readonly Item[])[] {
  const parts: (readonly Item[])[] = [];
  for (let start = 0; start < items.length; start += size) parts.push(items.slice(start, start + size));
  return parts;
}

/**
 * Answers by key of what only rises: heads and positions. Whoever asks says how high an answer must be to be of use; what is remembered and
 * lower is read again. So an old answer is never the reason of a difference, and few keys are asked for twice.
 */
export class Rising<Value> {
  readonly #load: (keys: readonly string[]) => Promise<ReadonlyMap<string, Value>>;
  readonly #heightOf: (value: Value) => number;
  readonly #max: number;
  readonly #known = new Map<string, Value>();

  constructor({
    heightOf,
    load,
    max = 10_000,
  }: {
    readonly load: (keys: readonly string[]) => Promise<ReadonlyMap<string, Value>>;
    readonly heightOf: (value: Value) => number;
    /** Answers that are remembered. */
    readonly max?: number;
  }) {
    this.#load = load;
    this.#heightOf = heightOf;
    this.#max = max;
  }

  /** `wanted`: the height that is asked for, by key. A key without an answer is not in the result. */
  async read(wanted: ReadonlyMap<string, number>): Promise<ReadonlyMap<string, Value>> {
    const found = new Map<string, Value>();
    const missing: string[] = [];
    for (const [key, height] of wanted) {
      const value = this.#known.get(key);
      if (value !== undefined && this.#heightOf(value) >= height) found.set(key, value);
      else missing.push(key);
    }
    if (missing.length === 0) return found;
    for (const [key, value] of await this.#load(missing)) {
      found.set(key, value);
      this.#known.set(key, value);
    }
    for (const key of this.#known.keys()) {
      if (this.#known.size <= this.#max) break;
      this.#known.delete(key);
    }
    return found;
  }
}

/** The highest version of each key. */
export function heightsOf(places: Iterable<readonly [key: string, version: number]>): ReadonlyMap<string, number> {
  const heights = new Map<string, number>();
  for (const [key, version] of places) heights.set(key, Math.max(heights.get(key) ?? 0, version));
  return heights;
}
