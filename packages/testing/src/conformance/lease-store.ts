import type { LeaseStore } from '@nightporter/relay';
import { describe, expect, it } from 'vitest';

export interface LeaseFixture {
  readonly leases: LeaseStore;
  /** Lets the database's clock go on. */
  readonly passTime: (byMs: number) => Promise<void>;
}

const SHORT_MS = 300;
const LONG_MS = 60_000;

/** Every lease store keeps to this. The fixture brings a fresh store for each test. */
export function leaseStoreConformance(name: string, makeFixture: () => Promise<LeaseFixture>): void {
  describe(`${name} as a lease store`, () => {
    it('gives a free lease to whoever asks first, at epoch 1', async () => {
      const { leases } = await makeFixture();
      const outcome = await leases.acquire({ shard: 'all', owner: 'first', durationMs: LONG_MS });
      expect(outcome).toEqual({ kind: 'held', epoch: 1, takenOver: true });
    });

    it('refuses a held lease to another and names the owner', async () => {
      const { leases } = await makeFixture();
      await leases.acquire({ shard: 'all', owner: 'first', durationMs: LONG_MS });
      const outcome = await leases.acquire({ shard: 'all', owner: 'second', durationMs: LONG_MS });
      expect(outcome).toEqual({ kind: 'refused', owner: 'first' });
    });

    it('renews its owner’s lease without raising the epoch', async () => {
      const { leases, passTime } = await makeFixture();
      await leases.acquire({ shard: 'all', owner: 'first', durationMs: SHORT_MS });
      const renewed = await leases.acquire({ shard: 'all', owner: 'first', durationMs: LONG_MS });
      expect(renewed).toEqual({ kind: 'held', epoch: 1, takenOver: false });
      await passTime(SHORT_MS + 50);
      const other = await leases.acquire({ shard: 'all', owner: 'second', durationMs: LONG_MS });
      expect(other).toEqual({ kind: 'refused', owner: 'first' });
    });

    it('hands an expired lease to the next with a raised epoch', async () => {
      const { leases, passTime } = await makeFixture();
      await leases.acquire({ shard: 'all', owner: 'first', durationMs: SHORT_MS });
      await passTime(SHORT_MS + 50);
      const outcome = await leases.acquire({ shard: 'all', owner: 'second', durationMs: LONG_MS });
      expect(outcome).toEqual({ kind: 'held', epoch: 2, takenOver: true });
    });

    it('takes an own lease that has expired over anew, with a raised epoch', async () => {
      const { leases, passTime } = await makeFixture();
      await leases.acquire({ shard: 'all', owner: 'first', durationMs: SHORT_MS });
      await passTime(SHORT_MS + 50);
      const outcome = await leases.acquire({ shard: 'all', owner: 'first', durationMs: LONG_MS });
      expect(outcome).toEqual({ kind: 'held', epoch: 2, takenOver: true });
    });

    it('gives a free lease to exactly one of many who ask at once', async () => {
      const { leases } = await makeFixture();
      const owners = ['a', 'b', 'c', 'd', 'e'];
      const outcomes = await Promise.all(
        owners.map((owner) => leases.acquire({ shard: 'all', owner, durationMs: LONG_MS })),
      );
      expect(outcomes.filter((outcome) => outcome.kind === 'held')).toHaveLength(1);
    });

    it('keeps shards apart', async () => {
      const { leases } = await makeFixture();
      await leases.acquire({ shard: 'low', owner: 'first', durationMs: LONG_MS });
      const outcome = await leases.acquire({ shard: 'high', owner: 'second', durationMs: LONG_MS });
      expect(outcome).toEqual({ kind: 'held', epoch: 1, takenOver: true });
    });

    it('frees a released lease at once, and the next epoch is higher', async () => {
      const { leases } = await makeFixture();
      const held = await leases.acquire({ shard: 'all', owner: 'first', durationMs: LONG_MS });
      if (held.kind !== 'held') throw new Error('the lease was not given');
      await leases.release({ shard: 'all', owner: 'first', epoch: held.epoch });
      const outcome = await leases.acquire({ shard: 'all', owner: 'second', durationMs: LONG_MS });
      expect(outcome).toEqual({ kind: 'held', epoch: 2, takenOver: true });
    });

    it('ignores a release by whoever no longer holds the lease, or holds it at another epoch', async () => {
      const { leases, passTime } = await makeFixture();
      const held = await leases.acquire({ shard: 'all', owner: 'first', durationMs: SHORT_MS });
      if (held.kind !== 'held') throw new Error('the lease was not given');
      await passTime(SHORT_MS + 50);
      await leases.acquire({ shard: 'all', owner: 'first', durationMs: LONG_MS });
      await leases.release({ shard: 'all', owner: 'first', epoch: held.epoch });
      await leases.release({ shard: 'all', owner: 'second', epoch: held.epoch });
      const outcome = await leases.acquire({ shard: 'all', owner: 'second', durationMs: LONG_MS });
      expect(outcome).toEqual({ kind: 'refused', owner: 'first' });
    });
  });
}
