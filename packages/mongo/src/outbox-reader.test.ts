import { aggregateVersion, namespace, slot } from '@nightporter/protocol';
import { describe, expect, it } from 'vitest';
import { pageFilters } from './outbox-reader.js';

const after = {
  namespace: namespace('orders.outbox'),
  source: 'orders',
  aggregateType: 'order',
  aggregateId: 'b',
  aggregateVersion: aggregateVersion(2),
};

type Row = Pick<typeof after, 'source' | 'aggregateType' | 'aggregateId'> & { readonly aggregateVersion: number };

describe('the pages of a sweep', () => {
  it('begin with a whole slot', () => {
    expect(pageFilters(slot(7), null)).toEqual([{ unsettled: true, slot: 7, source: { $gte: '' } }]);
  });

  it('go on with exactly the rows behind the cursor, each in one range, in order', () => {
    const filters = pageFilters(slot(7), after);
    const parts = ['a', 'b', 'c'];
    let seen = 0;
    for (const source of ['inventory', 'orders', 'points']) {
      for (const aggregateType of ['line', 'order', 'pay']) {
        for (const aggregateId of parts) {
          for (const version of [1, 2, 3]) {
            const row = { source, aggregateType, aggregateId, aggregateVersion: version };
            const ranges = filters.flatMap((filter, index) => (matches(filter, row) ? [index] : []));
            expect(ranges.length, JSON.stringify(row)).toBe(isBehind(row) ? 1 : 0);
            if (ranges.length === 1) seen += 1;
          }
        }
      }
    }
    expect(seen).toBe(1 + 3 + 9 + 27);
  });

  it('put the one range of each filter behind its equalities, which is how an index serves it', () => {
    for (const filter of pageFilters(slot(7), after)) {
      const isRange = Object.values(filter).map((value) => typeof value === 'object');
      expect(isRange.indexOf(true)).toBe(isRange.length - 1);
    }
  });
});

function matches(filter: object, row: Row): boolean {
  return Object.entries(filter).every(([field, wanted]: [string, unknown]) => {
    if (field === 'unsettled' || field === 'slot') return true;
    const value = row[field as keyof Row];
    return typeof wanted === 'object' ? value > (wanted as { $gt: typeof value }).$gt : value === wanted;
  });
}

function isBehind(row: Row): boolean {
  for (const field of ['source', 'aggregateType', 'aggregateId', 'aggregateVersion'] as const) {
    if (row[field] !== after[field]) return row[field] > after[field];
  }
  return false;
}
