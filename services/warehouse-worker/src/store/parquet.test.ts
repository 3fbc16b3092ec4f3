import { hasLoneSurrogate } from '@nightporter/contracts';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { TABLES, type Cell, type Column, type Row } from '../domain/tables.js';
import { decodeParquet, encodeParquet } from './parquet.js';

const cellOf = ({ nullable, type }: Column): fc.Arbitrary<Cell> => {
  const text = fc.string({ unit: 'binary' }).filter((value) => !hasLoneSurrogate(value));
  const integer = fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n });
  const time = fc.date({ min: new Date(0), max: new Date(4e12), noInvalidDate: true });
  const some: fc.Arbitrary<Cell> = { STRING: text, INT64: integer, TIMESTAMP: time }[type];
  return nullable ? fc.option(some, { nil: null }) : some;
};
const rowOf = fc.record(Object.fromEntries(TABLES.order_facts.map((column) => [column.name, cellOf(column)])));

describe('a Parquet file', () => {
  it('has the rows that were written, whatever is in them', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(rowOf, { maxLength: 20 }), async (rows: readonly Row[]) => {
        const { content, rows: count } = await encodeParquet('order_facts', rows);
        expect(count).toBe(rows.length);
        expect(await decodeParquet('order_facts', content)).toEqual(rows);
      }),
      { numRuns: 60 },
    );
  });

  it('of many rows has all of them in order, though it is written piece by piece', async () => {
    const row = Object.fromEntries(
      TABLES.events.map(({ name, type }) => [name, { STRING: 'x', INT64: 1n, TIMESTAMP: new Date(0) }[type]]),
    );
    const rows = Array.from({ length: 12_001 }, (_, index) => ({ ...row, aggregate_version: BigInt(index) }));
    const { content } = await encodeParquet('events', rows);
    const found = await decodeParquet('events', content);
    expect(found.length).toBe(rows.length);
    expect(found.every((one, index) => one['aggregate_version'] === BigInt(index))).toBe(true);
  });
});
