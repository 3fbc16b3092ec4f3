import { describe, expect, it } from 'vitest';
import { loadLine, loadView, type LoadSample } from './live-text.js';

const sample = (change: Partial<LoadSample> = {}): LoadSample => ({
  atMs: 2_000,
  placed: 100,
  producers: [
    { name: 'orders', committed: 250, unpublished: 10 },
    { name: 'inventory', committed: 90, unpublished: 0 },
    { name: 'shipping', committed: 20, unpublished: 0 },
  ],
  groups: [
    { name: 'inventory', settled: 240 },
    { name: 'orders', settled: 110 },
  ],
  ...change,
});
const before = sample({ atMs: 0, placed: 0, groups: [{ name: 'inventory', settled: 40 }] });

describe('the live view of a load', () => {
  it('has each stage with its count, its rate since the look before, and what it has still to do', () => {
    const rows = loadView(sample(), before, 400).map((row) => row.trim().split(/\s{2,}/));
    expect(rows).toEqual([
      ['stage', 'count', 'per s', 'lag', '25 % of 400 orders'],
      ['orders placed', '100', '50'],
      ['events committed', '360', '0'],
      ['events published', '350', '0', '10'],
      ['settled by inventory', '240', '100', '10'],
      ['settled by orders', '110', '55', '0'],
    ]);
  });

  it('is one line without a terminal, with what is behind', () => {
    expect(loadLine(sample(), before, 400)).toBe(
      '100 of 400 orders (50/s); behind: events published 10, settled by inventory 10',
    );
    expect(loadLine(sample(), null, 400)).toContain('(0/s)');
  });
});
