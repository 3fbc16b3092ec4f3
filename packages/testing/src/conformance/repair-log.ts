import type { RepairLog, RepairRecord } from '@nightporter/relay';
import { epoch } from '@nightporter/protocol';
import { describe, expect, it } from 'vitest';

export interface RepairFixture {
  readonly repairs: RepairLog;
  /** What an operator reads, oldest first. */
  readonly recorded: () => Promise<readonly RepairRecord[]>;
}

/** Every repair log keeps to this. */
export function repairLogConformance(name: string, makeFixture: () => Promise<RepairFixture>): void {
  describe(`${name} as a repair log`, () => {
    it('keeps every repair where an operator can read it', async () => {
      const { repairs, recorded } = await makeFixture();
      const first = { shard: 'all', epoch: epoch(1), owner: 'relay 1', reason: 'history lost', rows: 12 };
      const second = { ...first, epoch: epoch(2), reason: 'rows that the stream did not bring', rows: 1 };
      await repairs.record(first);
      await repairs.record(second);
      const read = await recorded();
      expect(read).toHaveLength(2);
      expect(read[0]).toMatchObject(first);
      expect(read[1]).toMatchObject(second);
    });
  });
}
