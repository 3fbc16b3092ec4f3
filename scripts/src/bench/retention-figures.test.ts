import { describe, expect, it } from 'vitest';
import { ratiosOf, writeFigures, type Window } from './retention-figures.js';

const window: Window = { kind: 'alone', startedMs: 1_000, endedMs: 2_000 };
const samples = (...lengthsMs: number[]) => lengthsMs.map((ms) => ({ startedMs: 1_500 - ms, endedMs: 1_500 }));

describe('the figures of writes', () => {
  it('are of all windows together, each write with all of its time', () => {
    const hundred = samples(...Array.from({ length: 100 }, (_, index) => index + 1));
    const other: Window = { ...window, endedMs: 4_000 };
    const figures = writeFigures([
      { window, samples: hundred },
      { window: other, samples: samples(700) },
    ]);
    expect(figures).toEqual({ writes: 101, writesPerSecond: 25.25, p50Ms: 51, p99Ms: 100 });
  });

  it('leave out what ended before the window or behind it', () => {
    const outside = [
      { startedMs: 990, endedMs: 999 },
      { startedMs: 1_990, endedMs: 2_000 },
    ];
    expect(writeFigures([{ window, samples: [...outside, ...samples(30)] }])).toMatchObject({ writes: 1, p50Ms: 30 });
  });

  it('are refused where nothing was written', () => {
    expect(() => writeFigures([{ window, samples: [] }])).toThrow('Nothing was written');
  });

  it('are compared as what retention makes of them', () => {
    const alone = { writes: 100, writesPerSecond: 200, p50Ms: 10, p99Ms: 20 };
    const beside = { writes: 100, writesPerSecond: 50, p50Ms: 30, p99Ms: 400 };
    expect(ratiosOf({ alone, beside })).toEqual({ writesPerSecond: 0.25, p50: 3, p99: 20 });
  });
});
