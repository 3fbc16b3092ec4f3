import type { Clock } from '@nightporter/protocol';

/** One line at most for a failure that goes on, in so long. */
export const SUMMARY_EVERY_MS = 10_000;
/** A success counts as the end of the trouble when no failure follows it for so long. */
export const SETTLED_MS = 2_000;
/** Kinds of failure that are told apart; what is beyond it is told together. */
const KEYS_MAX = 200;
const OTHERS = '(others)';

/** What has happened since the first failure of a kind, or since the last line about it. */
export interface FailureTally {
  readonly failures: number;
  readonly failuresInAll: number;
  readonly forMs: number;
}

/** Writes the lines; `details` are those of the last failure. */
export interface FailureLines<Details> {
  /** The first failure of its kind, told at once. */
  readonly began: (details: Details) => void;
  /** It goes on. */
  readonly goesOn: (details: Details, tally: FailureTally) => void;
  /** It has not failed any more; `isProven` when it has succeeded since. */
  readonly ended: (details: Details, tally: FailureTally, isProven: boolean) => void;
}

interface Trouble<Details> {
  readonly beganAtMs: number;
  details: Details;
  failures: number;
  failuresInAll: number;
  lastFailureAtMs: number;
  cancelSummary: () => void;
  cancelSettling: (() => void) | null;
}

/**
 * Tells of failures that repeat many times a second in a few lines: the first at once, then a summary every so often, and the end. A kind
 * of failure is *in trouble* from its first failure until a success that no failure follows, or a whole interval without any.
 */
export class FailureLog<Details> {
  readonly #clock: Clock;
  readonly #lines: FailureLines<Details>;
  readonly #troubles = new Map<string, Trouble<Details>>();

  constructor(clock: Clock, lines: FailureLines<Details>) {
    this.#clock = clock;
    this.#lines = lines;
  }

  failed(kind: string, details: Details): void {
    const key = this.#troubles.has(kind) || this.#troubles.size < KEYS_MAX ? kind : OTHERS;
    const nowMs = this.#clock.now();
    const trouble = this.#troubles.get(key);
    if (trouble === undefined) {
      this.#begin(key, details, nowMs);
      return;
    }
    trouble.details = details;
    trouble.failures += 1;
    trouble.failuresInAll += 1;
    trouble.lastFailureAtMs = nowMs;
  }

  succeeded(key: string): void {
    const trouble = this.#troubles.get(key);
    if (trouble === undefined || trouble.cancelSettling !== null) return;
    const atMs = this.#clock.now();
    trouble.cancelSettling = this.#clock.after(SETTLED_MS, () => {
      trouble.cancelSettling = null;
      if (trouble.lastFailureAtMs <= atMs) this.#end(key, trouble, true);
    });
  }

  /** Says no more of it: it is none of ours any longer. Leaves no timer behind. */
  forgetAll(): void {
    for (const trouble of this.#troubles.values()) cancel(trouble);
    this.#troubles.clear();
  }

  #begin(key: string, details: Details, nowMs: number): void {
    const trouble: Trouble<Details> = {
      beganAtMs: nowMs,
      details,
      failures: 0,
      failuresInAll: 1,
      lastFailureAtMs: nowMs,
      cancelSummary: () => undefined,
      cancelSettling: null,
    };
    this.#troubles.set(key, trouble);
    this.#lines.began(details);
    this.#armSummary(key, trouble);
  }

  #armSummary(key: string, trouble: Trouble<Details>): void {
    trouble.cancelSummary = this.#clock.after(SUMMARY_EVERY_MS, () => {
      if (trouble.failures === 0) {
        this.#end(key, trouble, false);
        return;
      }
      this.#lines.goesOn(trouble.details, this.#tallyOf(trouble));
      trouble.failures = 0;
      this.#armSummary(key, trouble);
    });
  }

  #end(key: string, trouble: Trouble<Details>, isProven: boolean): void {
    cancel(trouble);
    this.#troubles.delete(key);
    this.#lines.ended(trouble.details, this.#tallyOf(trouble), isProven);
  }

  #tallyOf({ failures, failuresInAll, beganAtMs }: Trouble<Details>): FailureTally {
    return { failures, failuresInAll, forMs: Math.round(this.#clock.now() - beganAtMs) };
  }
}

function cancel(trouble: { readonly cancelSummary: () => void; readonly cancelSettling: (() => void) | null }): void {
  trouble.cancelSummary();
  trouble.cancelSettling?.();
}
