import { aggregateKey, aggregateVersion, eventId } from '@nightporter/protocol';
import { describe, expect, it } from 'vitest';
import { lanesOf } from './history.js';
import type { PublishedReference } from './ledger-ports.js';

function rowsOf(...places: readonly string[]): readonly PublishedReference[] {
  return places.map((place) => {
    const [aggregateId = '', version = ''] = place.split('-');
    const aggregate = aggregateKey({ source: 'orders', aggregateType: 'order', aggregateId });
    return { aggregate, version: aggregateVersion(Number(version)), eventId: eventId(place) };
  });
}

const idsOf = (lanes: ReturnType<typeof lanesOf>): readonly string[][] =>
  lanes.map((lane) => lane.map(({ eventId: id }) => id));

describe('the lanes of a history', () => {
  it('hold each aggregate in one of them, and each row once', () => {
    const rows = rowsOf('a-1', 'b-1', 'a-2', 'c-1', 'b-2', 'd-1', 'a-3');
    const lanes = idsOf(lanesOf(rows, 2));
    expect(lanes.flat().sort()).toEqual(rows.map(({ eventId: id }) => id as string).sort());
    for (const name of ['a', 'b', 'c', 'd']) {
      expect(lanes.filter((lane) => lane.some((id) => id.startsWith(name)))).toHaveLength(1);
    }
  });

  it('are about of one length', () => {
    const rows = rowsOf(...Array.from({ length: 100 }, (_, index) => `a${index}-1`));
    expect(lanesOf(rows, 4).map((lane) => lane.length)).toEqual([25, 25, 25, 25]);
  });

  it('let the versions of an aggregate rise, whatever the order of their marks, and keep that of the aggregates', () => {
    expect(idsOf(lanesOf(rowsOf('a-3', 'b-1', 'a-1', 'a-2'), 1))).toEqual([['a-1', 'b-1', 'a-2', 'a-3']]);
  });

  it('are no more than there are aggregates', () => {
    expect(lanesOf(rowsOf('a-1', 'a-2'), 4)).toHaveLength(1);
    expect(lanesOf([], 4)).toEqual([]);
  });
});
