import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { SLO_BURNS, SLO_WINDOWS, judgeWindows, windowsOf, type SettledEvent, type SloWindowName } from './judge.js';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const NOW_MS = 1_000 * HOUR_MS;
const question = { nowMs: NOW_MS, completeFromMs: Number.NEGATIVE_INFINITY, thresholdMs: 5_000 };

/** So many events, settled so long ago, of which so many were late. */
function settled(agoMs: number, { late = 0, of }: { late?: number; of: number }): SettledEvent[] {
  return Array.from({ length: of }, (_, index) => ({
    processedAtMs: NOW_MS - agoMs,
    latencyMs: index < late ? 5_001 : 5_000,
  }));
}

const figuresOf = (events: readonly SettledEvent[], name: SloWindowName, asked = question) =>
  windowsOf(events, asked).find(({ window }) => window === name);
const verdictOf = (events: readonly SettledEvent[]) => judgeWindows(windowsOf(events, question));

describe('a window of the service level', () => {
  it('counts what was settled in it, and what took no longer than the threshold', () => {
    const events = [...settled(MINUTE_MS, { of: 199, late: 0 }), ...settled(MINUTE_MS, { of: 1, late: 1 })];
    expect(figuresOf([...events, ...settled(10 * MINUTE_MS, { of: 50, late: 50 })], '5m')).toEqual({
      window: '5m',
      settled: 200,
      within: 199,
      share: 0.995,
      p50Ms: 5_000,
      p99Ms: 5_000,
      budgetLeft: 0,
      burnRate: 1,
      notKnown: 0,
      isWhole: true,
    });
  });

  it('has the latency that half of the events, and 99 in 100, did not exceed', () => {
    const events = Array.from({ length: 200 }, (_, index) => ({ processedAtMs: NOW_MS, latencyMs: 200 - index }));
    expect(figuresOf(events, '1h')).toMatchObject({ p50Ms: 100, p99Ms: 198 });
    expect(figuresOf(events.slice(0, 1), '1h')).toMatchObject({ p50Ms: 200, p99Ms: 200 });
  });

  it('has no share, percentile or burn rate where nothing was settled', () => {
    expect(figuresOf(settled(HOUR_MS, { of: 3 }), '30m')).toMatchObject({
      settled: 0,
      share: null,
      p50Ms: null,
      p99Ms: null,
      budgetLeft: null,
      burnRate: null,
    });
  });

  it('leaves out, and counts, events whose commit was not found', () => {
    const events = [...settled(0, { of: 2 }), { processedAtMs: NOW_MS, latencyMs: null }];
    expect(figuresOf(events, '5m')).toMatchObject({ settled: 2, share: 1, notKnown: 1 });
  });

  it('says when only its later part was read, and counts only that', () => {
    const asked = { ...question, completeFromMs: NOW_MS - 45 * MINUTE_MS };
    const events = [...settled(40 * MINUTE_MS, { of: 1 }), ...settled(50 * MINUTE_MS, { of: 1 })];
    const windows = windowsOf(events, asked).map(({ isWhole, settled: count }) => [isWhole, count]);
    expect(windows).toEqual([
      [true, 0],
      [true, 0],
      [false, 1],
      [false, 1],
      [false, 1],
      [false, 1],
    ]);
  });
});

describe('the verdict on a group', () => {
  it('is a page where two percent of the budget go in an hour, and still do', () => {
    const fast = { kind: 'page', long: '1h', short: '5m', factor: 14.4 };
    expect(verdictOf(settled(MINUTE_MS, { of: 1_000, late: 73 }))).toEqual(fast);
    // 14.4 times five in a thousand: at the factor is not above it.
    expect(verdictOf(settled(MINUTE_MS, { of: 1_000, late: 72 }))).toMatchObject({ kind: 'page', long: '6h' });
  });

  it('is no page of the hour once the last minutes are well again', () => {
    const events = [...settled(40 * MINUTE_MS, { of: 1_000, late: 500 }), ...settled(MINUTE_MS, { of: 1_000 })];
    expect(verdictOf(events)).toEqual({ kind: 'ticket', long: '3d', short: '6h', factor: 1 });
  });

  it('is a page where five percent of the budget go in six hours', () => {
    const events = [
      ...settled(10 * MINUTE_MS, { of: 1_000, late: 31 }),
      ...settled(2 * HOUR_MS, { of: 1_000, late: 40 }),
    ];
    expect(verdictOf(events)).toEqual({ kind: 'page', long: '6h', short: '30m', factor: 6 });
  });

  it('is a ticket where nothing of the budget would be left', () => {
    const events = [...settled(5 * HOUR_MS, { of: 1_000, late: 6 }), ...settled(70 * HOUR_MS, { of: 1_000, late: 6 })];
    expect(verdictOf(events)).toEqual({ kind: 'ticket', long: '3d', short: '6h', factor: 1 });
  });

  it('is ok where the objective is just kept, and where only days ago were bad', () => {
    expect(verdictOf(settled(MINUTE_MS, { of: 1_000, late: 5 }))).toEqual({ kind: 'ok' });
    expect(verdictOf(settled(20 * HOUR_MS, { of: 1_000, late: 1_000 }))).toEqual({ kind: 'ok' });
  });

  it('is none where nothing was settled', () => {
    expect(verdictOf([])).toEqual({ kind: 'nothing-settled' });
    expect(verdictOf(settled(80 * HOUR_MS, { of: 10 }))).toEqual({ kind: 'nothing-settled' });
  });
});

it('Windows, factors and objective are those of the alarms.', () => {
  const path = fileURLToPath(new URL('../../../../docker/prometheus/rules/slo.yaml', import.meta.url));
  const alarms = [
    ...readFileSync(path, 'utf8').matchAll(
      /slo_late:ratio_rate(\w+) > ([\d.]+) \* 0\.005 and nightporter:slo_late:ratio_rate(\w+) > ([\d.]+) \* 0\.005/g,
    ),
  ].map(([, long, longFactor, short, shortFactor]) => ({
    long,
    short,
    factors: [longFactor, shortFactor].map(Number),
  }));
  expect(alarms).toEqual(SLO_BURNS.map(({ factor, long, short }) => ({ long, short, factors: [factor, factor] })));
  expect(SLO_WINDOWS.map(({ name }) => name)).toEqual(['5m', '30m', '1h', '6h', '24h', '3d']);
});
