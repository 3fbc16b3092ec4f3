import { expect, it } from 'vitest';
import { ShardShare } from './shard-share.js';

it('There are as many places as the share has, and none while it is unknown', () => {
  const share = new ShardShare(null);
  expect(share.take('a')).toBe(false);
  share.set(2);
  expect(['a', 'b', 'c'].map((shard) => share.take(shard))).toEqual([true, true, false]);
  share.set(3);
  expect(share.take('c')).toBe(true);
});

it('A shard that was asked for in vain lets those go first that wait, so that a free one is not overlooked', () => {
  const share = new ShardShare(1);
  expect(['a', 'b', 'c'].map((shard) => share.take(shard))).toEqual([true, false, false]);
  share.free('a');
  expect(['a', 'c', 'b'].map((shard) => share.take(shard))).toEqual([false, false, true]);
});

it('Those that wait are woken when a place may be free, and the share has changed only where it is another', () => {
  const share = new ShardShare(1);
  let rings = 0;
  const listen = (): void => void share.changed.onceRung(() => (rings += 1));
  share.take('a');
  listen();
  share.free('never placed');
  expect([rings, share.set(1)]).toEqual([0, false]);
  share.free('a');
  expect(rings).toBe(1);
  listen();
  expect([share.set(2), rings]).toEqual([true, 2]);
});
