/** Tells a history, and sums it up in a number: two runs of one seed must agree on it. */
export class Trace {
  readonly #lines: string[] | null;
  readonly #nowMs: () => number;
  #hash = 0x811c9dc5;

  constructor(nowMs: () => number, options: { tell: boolean }) {
    this.#nowMs = nowMs;
    this.#lines = options.tell ? [] : null;
  }

  /** `detail` is only asked for when somebody listens. */
  note(what: string, detail?: () => string): void {
    this.#mix(this.#nowMs() * 1000);
    for (let index = 0; index < what.length; index += 1) this.#mix(what.charCodeAt(index));
    if (this.#lines === null) return;
    const seconds = (this.#nowMs() / 1000).toFixed(4).padStart(9);
    this.#lines.push(`${seconds} ${what}${detail === undefined ? '' : ` ${detail()}`}`);
  }

  get hash(): string {
    return (this.#hash >>> 0).toString(16).padStart(8, '0');
  }

  get lines(): readonly string[] {
    return this.#lines ?? [];
  }

  #mix(value: number): void {
    this.#hash = Math.imul(this.#hash ^ (value | 0), 0x01000193);
  }
}
