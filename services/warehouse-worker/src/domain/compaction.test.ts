import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { compactionOf, type LiveFile } from './compaction.js';

const limits = { filesMin: 4, rowsMax: 1_000, coldMs: 10_000 };
let names = 0;

function file(change: Partial<LiveFile> = {}): LiveFile {
  names += 1;
  const place = { table: 'events', day: '2026-11-30' } as const;
  return { name: `file ${names}`, ...place, rows: 10, bytes: 100, sha256: '', level: 0, addedAtMs: 0, ...change };
}
const files = (count: number, change: Partial<LiveFile> = {}): readonly LiveFile[] =>
  Array.from({ length: count }, () => file(change));

describe('compaction', () => {
  it('merges the files of one level, table and day once there are enough of them', () => {
    const enough = files(4);
    const others = [
      ...files(3, { level: 1 }),
      ...files(3, { day: '2026-12-01' }),
      ...files(3, { table: 'order_facts' }),
    ];
    expect(compactionOf([...others, ...enough], 0, limits)).toEqual({ kind: 'merge', files: enough });
    expect(compactionOf([...others, ...enough.slice(1)], 0, limits)).toEqual({ kind: 'none' });
  });

  it('makes one file of a day to which nothing is added any more, whatever its levels', () => {
    const day = [file(), file({ level: 1, addedAtMs: 5_000 })];
    expect(compactionOf(day, 14_999, limits)).toEqual({ kind: 'none' });
    expect(compactionOf(day, 15_000, limits)).toEqual({ kind: 'merge', files: day });
  });

  it('leaves a single file, and files that are full, as they are', () => {
    expect(compactionOf([file()], 1e9, limits)).toEqual({ kind: 'none' });
    expect(compactionOf(files(9, { rows: 600 }), 1e9, limits)).toEqual({ kind: 'none' });
  });

  it('comes to an end, keeps every row, and writes no file that is too large, whatever it is given', () => {
    const anyFile = fc.record({ rows: fc.integer({ min: 1, max: 1_200 }), level: fc.integer({ min: 0, max: 3 }) });
    fc.assert(
      fc.property(fc.array(anyFile, { maxLength: 60 }), (some) => {
        let live = some.map((change) => file(change));
        const rowsOf = (of: readonly LiveFile[]) => of.reduce((sum, { rows }) => sum + rows, 0);
        const before = rowsOf(live);
        for (;;) {
          const step = compactionOf(live, 1e9, limits);
          if (step.kind === 'none') break;
          expect(step.files.length).toBeGreaterThan(1);
          expect(rowsOf(step.files)).toBeLessThanOrEqual(limits.rowsMax);
          const level = 1 + Math.max(...step.files.map((one) => one.level));
          live = [...live.filter((one) => !step.files.includes(one)), file({ rows: rowsOf(step.files), level })];
        }
        expect(rowsOf(live)).toBe(before);
      }),
    );
  });
});
