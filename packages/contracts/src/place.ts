/** Where a value stands inside a payload: a chain to the root, so that a path is only spelled out for an error. */
export interface Place {
  readonly parent: Place | null;
  /** A key, an index, or at the root its name. */
  readonly step: string | number;
  /** 0 at the root. */
  readonly depth: number;
}

const PATH_LENGTH_MAX = 500;

/** `payload.lines[3].price`; keys that are no identifiers stand as `["a key"]`. A very long path loses its middle. */
export function pathTo(place: Place): string {
  const steps: string[] = [];
  for (let current: Place | null = place; current !== null; current = current.parent) steps.push(stepOf(current));
  const path = steps.reverse().join('');
  if (path.length <= PATH_LENGTH_MAX) return path;
  return `${path.slice(0, PATH_LENGTH_MAX / 2)} … ${path.slice(-PATH_LENGTH_MAX / 2)}`;
}

function stepOf({ parent, step }: Place): string {
  if (typeof step === 'number') return `[${step}]`;
  if (parent === null) return step;
  return /^[\p{L}_][\p{L}\p{N}_]*$/u.test(step) ? `.${step}` : `[${JSON.stringify(step)}]`;
}
