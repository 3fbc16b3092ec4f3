import { describe, expect, it } from 'vitest';
import { completeFrom } from './sample.js';

const DAY_MS = 86_400_000;
const nowMs = 1_000 * DAY_MS;

describe('a sample of the inbox', () => {
  it.each([
    ['everything where nothing was ever settled', [], null, Number.NEGATIVE_INFINITY],
    ['what has not expired, where all of the inbox was read', [90 * DAY_MS], null, nowMs - 90 * DAY_MS],
    ['what expires behind the last record that was read', [90 * DAY_MS], nowMs + 89 * DAY_MS, nowMs - DAY_MS],
    [
      'nothing where a retention was shortened and only records of the longer one were read',
      [90 * DAY_MS, 30 * DAY_MS],
      nowMs + 60 * DAY_MS,
      nowMs + 30 * DAY_MS,
    ],
    [
      'what is newer than a retention that was lengthened, by the shorter one',
      [30 * DAY_MS, 90 * DAY_MS],
      nowMs + 29 * DAY_MS,
      nowMs - DAY_MS,
    ],
  ])('is complete for %s', (_what, retentionsMs, earliestExpiryMs, fromMs) => {
    expect(completeFrom({ nowMs, earliestExpiryMs, retentionsMs })).toBe(fromMs);
  });
});
