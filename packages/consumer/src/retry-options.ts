import type { RetryDelays } from '@nightporter/protocol';

/** A year. The database refuses a date that is too far away, and then a failed event could not even be parked. */
const DELAY_MS_MAX = 365 * 24 * 60 * 60 * 1_000;

/** What is wrong with the waits between attempts, with the value and the accepted range; null where nothing is. */
export function retryDelaysFault(name: string, delays: RetryDelays): string | null {
  if (delays.kind === 'schedule') return scheduleFault(name, delays.delaysMs);
  const { capMs, factor, firstMs, jitter } = delays;
  if (!isWhole(firstMs, 1)) return `${name}.firstMs is ${firstMs}; it must be a whole number from 1 to ${DELAY_MS_MAX}`;
  if (!isWhole(capMs, firstMs)) {
    return `${name}.capMs is ${capMs}; it must be a whole number from firstMs (${firstMs}) to ${DELAY_MS_MAX}`;
  }
  if (!(factor >= 1 && factor <= 100)) return `${name}.factor is ${factor}; it must be a number from 1 to 100`;
  if (!(jitter >= 0 && jitter <= 1)) return `${name}.jitter is ${jitter}; it must be a number from 0 to 1`;
  return null;
}

function scheduleFault(name: string, delaysMs: readonly number[]): string | null {
  if (delaysMs.length > 0 && delaysMs.every((delayMs) => isWhole(delayMs, 0))) return null;
  return `${name} is [${delaysMs.join(', ')}]; it needs one delay or more, each a whole number from 0 to ${DELAY_MS_MAX}`;
}

function isWhole(value: number, min: number): boolean {
  return Number.isSafeInteger(value) && value >= min && value <= DELAY_MS_MAX;
}
