import type { OutboxStats } from '@nightporter/relay';
import { describe, expect, it } from 'vitest';
import type { MarkerFixture } from './outbox-marker.js';
import { published, target } from './outbox-reader.js';

export interface StatsFixture extends MarkerFixture {
  readonly stats: OutboxStats;
  readonly passTime: (byMs: number) => Promise<void>;
}

/** The figures of every outbox keep to this. The fixture brings fresh outboxes for each test. */
export function outboxStatsConformance(name: string, makeFixture: () => Promise<StatsFixture>): void {
  describe(`${name} as the figures of an outbox`, () => {
    it('count nothing where there is nothing', async () => {
      const { stats } = await makeFixture();
      const { unsettled, isCapped } = await stats.read();
      const none = { rows: 0, oldestAgeMs: null };
      expect({ unsettled, isCapped }).toEqual({
        unsettled: { PENDING: none, PROCESSING: none, FAILED: none, DEAD: none },
        isCapped: false,
      });
    });

    it('count by status what is unsettled in all outboxes, and how old the oldest is', async () => {
      const { stats, commit, marker, passTime } = await makeFixture();
      const [first, second] = await commit([{ aggregateId: 'a' }, { aggregateId: 'b', outbox: 'second' }]);
      await passTime(300);
      const rows = await commit(['c', 'd', 'e'].map((aggregateId) => ({ aggregateId })));
      const failed = { kind: 'failed', retryCount: 1, retryInMs: 60_000, error: 'refused' } as const;
      await marker.mark([
        published(first!),
        { ...target(rows[0]!), ...failed, status: 'DEAD', revision: rows[0]!.revision },
        { ...target(rows[1]!), ...failed, status: 'FAILED', revision: rows[1]!.revision },
        { ...target(rows[2]!), kind: 'claimed', revision: rows[2]!.revision },
      ]);
      const { PENDING, PROCESSING, FAILED, DEAD } = (await stats.read()).unsettled;
      expect([PENDING, PROCESSING, FAILED, DEAD].map((figures) => figures.rows)).toEqual([1, 1, 1, 1]);
      expect(second?.status).toBe('PENDING');
      expect(PENDING.oldestAgeMs).toBeGreaterThanOrEqual(300);
      expect(DEAD.oldestAgeMs).toBeLessThanOrEqual(PENDING.oldestAgeMs! - 299);
    });
  });
}
