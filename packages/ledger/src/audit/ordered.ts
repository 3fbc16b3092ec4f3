/** Streams that are read in one order, so that what belongs together meets without being asked for one by one. */

type Compare<Item> = (left: Item, right: Item) => number;

/** Merges sorted sources, holding one item of each; of equal items, those of earlier sources come first. Ends all of them, however it ends. */
export async function* mergeSorted<Item>(
  sources: readonly AsyncIterator<Item>[],
  compare: Compare<Item>,
): AsyncGenerator<Item> {
  try {
    const heads = await Promise.all(sources.map(async (source) => ({ source, next: await source.next() })));
    for (;;) {
      let lowest: (typeof heads)[number] | null = null;
      for (const head of heads) {
        if (head.next.done === true) continue;
        if (lowest === null || compare(head.next.value, lowest.next.value as Item) < 0) lowest = head;
      }
      if (lowest === null) return;
      yield lowest.next.value as Item;
      lowest.next = await lowest.source.next();
    }
  } finally {
    for (const source of sources) await source.return?.();
  }
}

export async function* inBatches<Item>(items: AsyncIterable<Item>, size: number): AsyncGenerator<readonly Item[]> {
  let batch: Item[] = [];
  for await (const item of items) {
    batch.push(item);
    if (batch.length < size) continue;
    yield batch;
    batch = [];
  }
  if (batch.length > 0) yield batch;
}

/** As servers order strings: by their bytes in UTF-8, which is by code points and not by UTF-16 units. */
export function compareStrings(left: string, right: string): number {
  if (left === right) return 0;
  const length = Math.min(left.length, right.length);
  for (let index = 0; index < length; index += 1) {
    const [a, b] = [left.charCodeAt(index), right.charCodeAt(index)];
    if (a === b) continue;
    // A surrogate stands for a code point above all others.
    const isHigh = { a: isSurrogate(a), b: isSurrogate(b) };
    return isHigh.a === isHigh.b ? a - b : isHigh.a ? 1 : -1;
  }
  return left.length - right.length;
}

function isSurrogate(unit: number): boolean {
  return unit >= 0xd800 && unit <= 0xdfff;
}
