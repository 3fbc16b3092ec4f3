export interface Hole {
  readonly from: number;
  readonly to: number;
}

export interface Holes {
  /** Rising. */
  readonly holes: readonly Hole[];
  /** Different versions from 1 to the head. */
  readonly present: number;
  /** The first version above the head; null where there is none. */
  readonly above: number | null;
}

/** What is missing of 1 … `head` among versions that rise, and may repeat while a row moves from one place to another. */
export async function holesOf(versions: AsyncIterable<number> | Iterable<number>, head: number): Promise<Holes> {
  const holes: Hole[] = [];
  let last = 0;
  let present = 0;
  let above: number | null = null;
  for await (const version of versions) {
    if (version <= last) continue;
    if (version > head) {
      above = version;
      break;
    }
    if (version > last + 1) holes.push({ from: last + 1, to: version - 1 });
    last = version;
    present += 1;
  }
  if (last < head) holes.push({ from: last + 1, to: head });
  return { holes, present, above };
}
