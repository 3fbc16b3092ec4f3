import type { CheckpointStore } from '@nightporter/relay';
import { epoch, type ResumeToken } from '@nightporter/protocol';
import { describe, expect, it } from 'vitest';

export interface CheckpointFixture {
  readonly checkpoints: CheckpointStore;
  /** Tokens as this database gives them; the store must not look into them. */
  readonly tokens: readonly [ResumeToken, ResumeToken];
}

const shard = 'all';

/** Every checkpoint store keeps to this. The fixture brings a fresh store for each test. */
export function checkpointStoreConformance(name: string, makeFixture: () => Promise<CheckpointFixture>): void {
  describe(`${name} as a checkpoint store`, () => {
    it('has no token before the first save', async () => {
      const { checkpoints } = await makeFixture();
      expect(await checkpoints.claim({ shard, epoch: epoch(1) })).toEqual({ kind: 'claimed', token: null });
    });

    it('gives the saved token to the next epoch', async () => {
      const { checkpoints, tokens } = await makeFixture();
      await checkpoints.claim({ shard, epoch: epoch(1) });
      expect(await checkpoints.save({ shard, epoch: epoch(1), seq: 1, token: tokens[0] })).toBe('saved');
      expect(await checkpoints.save({ shard, epoch: epoch(1), seq: 2, token: tokens[1] })).toBe('saved');
      expect(await checkpoints.claim({ shard, epoch: epoch(2) })).toEqual({ kind: 'claimed', token: tokens[1] });
    });

    it('keeps the token when a claim is followed by another before any save', async () => {
      const { checkpoints, tokens } = await makeFixture();
      await checkpoints.claim({ shard, epoch: epoch(1) });
      await checkpoints.save({ shard, epoch: epoch(1), seq: 1, token: tokens[0] });
      await checkpoints.claim({ shard, epoch: epoch(2) });
      expect(await checkpoints.claim({ shard, epoch: epoch(3) })).toEqual({ kind: 'claimed', token: tokens[0] });
    });

    it('refuses a save without a claim', async () => {
      const { checkpoints, tokens } = await makeFixture();
      expect(await checkpoints.save({ shard, epoch: epoch(1), seq: 1, token: tokens[0] })).toBe('fenced');
      expect(await checkpoints.claim({ shard, epoch: epoch(1) })).toEqual({ kind: 'claimed', token: null });
    });

    it('refuses saves and claims of an earlier epoch once a later one has claimed', async () => {
      const { checkpoints, tokens } = await makeFixture();
      await checkpoints.claim({ shard, epoch: epoch(1) });
      await checkpoints.save({ shard, epoch: epoch(1), seq: 1, token: tokens[0] });
      await checkpoints.claim({ shard, epoch: epoch(2) });
      expect(await checkpoints.save({ shard, epoch: epoch(1), seq: 2, token: tokens[1] })).toBe('fenced');
      expect(await checkpoints.claim({ shard, epoch: epoch(1) })).toEqual({ kind: 'fenced' });
      expect(await checkpoints.claim({ shard, epoch: epoch(2) })).toEqual({ kind: 'claimed', token: tokens[0] });
    });

    it('refuses a save that lands behind a later one of the same epoch', async () => {
      const { checkpoints, tokens } = await makeFixture();
      await checkpoints.claim({ shard, epoch: epoch(1) });
      await checkpoints.save({ shard, epoch: epoch(1), seq: 2, token: tokens[1] });
      expect(await checkpoints.save({ shard, epoch: epoch(1), seq: 1, token: tokens[0] })).toBe('fenced');
      expect(await checkpoints.save({ shard, epoch: epoch(1), seq: 2, token: tokens[0] })).toBe('fenced');
      expect(await checkpoints.claim({ shard, epoch: epoch(2) })).toEqual({ kind: 'claimed', token: tokens[1] });
    });

    it('refuses a second claim of an epoch that has saved, since its sequence would begin anew', async () => {
      const { checkpoints, tokens } = await makeFixture();
      await checkpoints.claim({ shard, epoch: epoch(1) });
      await checkpoints.save({ shard, epoch: epoch(1), seq: 1, token: tokens[0] });
      expect(await checkpoints.claim({ shard, epoch: epoch(1) })).toEqual({ kind: 'fenced' });
    });

    it('counts the sequence anew in every epoch', async () => {
      const { checkpoints, tokens } = await makeFixture();
      await checkpoints.claim({ shard, epoch: epoch(1) });
      await checkpoints.save({ shard, epoch: epoch(1), seq: 9, token: tokens[0] });
      await checkpoints.claim({ shard, epoch: epoch(2) });
      expect(await checkpoints.save({ shard, epoch: epoch(2), seq: 1, token: tokens[1] })).toBe('saved');
    });

    it('keeps shards apart', async () => {
      const { checkpoints, tokens } = await makeFixture();
      await checkpoints.claim({ shard: 'low', epoch: epoch(1) });
      await checkpoints.save({ shard: 'low', epoch: epoch(1), seq: 1, token: tokens[0] });
      expect(await checkpoints.claim({ shard: 'high', epoch: epoch(1) })).toEqual({ kind: 'claimed', token: null });
    });
  });
}
