import type { LeaseStore, ShardMapStore } from '@nightporter/relay';
import { describe, expect, it } from 'vitest';

export interface ShardMapFixture {
  readonly shardMaps: ShardMapStore;
  /** Of the same database. */
  readonly leases: LeaseStore;
  /** Lets the database's clock go on. */
  readonly passTime: (byMs: number) => Promise<void>;
}

const SHORT_MS = 500;
const LONG_MS = 60_000;
const ONE = ['all'];
const TWO = ['2-0', '2-1'];

/** Every store of the shard map keeps to this. The fixture brings a fresh database for each test. */
export function shardMapStoreConformance(name: string, makeFixture: () => Promise<ShardMapFixture>): void {
  describe(`${name} as the store of the shard map`, () => {
    it('agrees on the first map that asks, and on it again', async () => {
      const { shardMaps } = await makeFixture();
      expect(await shardMaps.check({ map: TWO })).toMatchObject({ kind: 'other' });
      expect(await shardMaps.agree({ map: TWO, settleMs: LONG_MS })).toEqual({ kind: 'agreed' });
      expect(await shardMaps.agree({ map: TWO, settleMs: LONG_MS })).toEqual({ kind: 'agreed' });
      expect(await shardMaps.check({ map: TWO })).toEqual({ kind: 'agreed' });
    });

    it('keeps another map out until the one that was agreed on has had its time', async () => {
      const { shardMaps, passTime } = await makeFixture();
      await shardMaps.agree({ map: TWO, settleMs: LONG_MS });
      const early = await shardMaps.agree({ map: ONE, settleMs: LONG_MS });
      expect(early).toEqual({ kind: 'other', reason: 'agreed on are the shards 2-0 2-1' });
      await passTime(SHORT_MS + 50);
      expect(await shardMaps.agree({ map: ONE, settleMs: SHORT_MS })).toEqual({ kind: 'agreed' });
      expect(await shardMaps.check({ map: TWO })).toMatchObject({ kind: 'other' });
    });

    it('keeps another map out while a lease outside it is alive, and names it', async () => {
      const { shardMaps, leases } = await makeFixture();
      const held = await leases.acquire({ shard: '2-1', owner: 'relay 1', durationMs: LONG_MS });
      if (held.kind !== 'held') throw new Error('the lease was not given');
      const refused = { kind: 'other', reason: 'shard 2-1 is held by relay 1' };
      expect(await shardMaps.agree({ map: ONE, settleMs: 1 })).toEqual(refused);
      expect(await shardMaps.agree({ map: TWO, settleMs: 1 })).toEqual({ kind: 'agreed' });
      await leases.release({ shard: '2-1', owner: 'relay 1', epoch: held.epoch });
      expect(await shardMaps.agree({ map: ['3-0', '3-1', '3-2'], settleMs: LONG_MS })).toMatchObject({ kind: 'other' });
    });

    it('leaves the map as it is while it is served, however long ago it was agreed on', async () => {
      const { shardMaps, leases, passTime } = await makeFixture();
      await shardMaps.agree({ map: TWO, settleMs: LONG_MS });
      await leases.acquire({ shard: '2-1', owner: 'relay 1', durationMs: LONG_MS });
      await passTime(SHORT_MS + 50);
      expect(await shardMaps.agree({ map: ONE, settleMs: SHORT_MS })).toMatchObject({ kind: 'other' });
      expect(await shardMaps.check({ map: TWO })).toEqual({ kind: 'agreed' });
    });

    it('finds at a check the lease of another map that was granted after both had agreed', async () => {
      const { shardMaps, leases } = await makeFixture();
      await shardMaps.agree({ map: ONE, settleMs: LONG_MS });
      await leases.acquire({ shard: '2-0', owner: 'relay 2', durationMs: SHORT_MS });
      expect(await shardMaps.check({ map: ONE })).toEqual({ kind: 'other', reason: 'shard 2-0 is held by relay 2' });
    });

    it('no longer minds a lease that has expired', async () => {
      const { shardMaps, leases, passTime } = await makeFixture();
      await leases.acquire({ shard: 'all', owner: 'relay 1', durationMs: SHORT_MS });
      await passTime(SHORT_MS + 50);
      expect(await shardMaps.agree({ map: TWO, settleMs: LONG_MS })).toEqual({ kind: 'agreed' });
    });

    it('agrees on one map when several ask at once', async () => {
      const { shardMaps } = await makeFixture();
      const maps = [ONE, TWO, ['3-0', '3-1', '3-2']];
      const outcomes = await Promise.all(maps.map((map) => shardMaps.agree({ map, settleMs: LONG_MS })));
      expect(outcomes.filter(({ kind }) => kind === 'agreed')).toHaveLength(1);
    });
  });
}
