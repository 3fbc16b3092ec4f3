import fc from 'fast-check';
import { expect, test } from 'vitest';
import { DueQueue } from './due-queue.js';

test('what is due comes out by time, and what is due at one moment in the order of arrival', () => {
  fc.assert(
    fc.property(fc.array(fc.nat({ max: 20 }), { maxLength: 60, size: 'max' }), (times) => {
      const queue = new DueQueue<{ atMs: number; order: number }>();
      times.forEach((atMs, order) => {
        queue.push(atMs, { atMs, order });
      });
      const expected = times
        .map((atMs, order) => ({ atMs, order }))
        .sort((one, other) => one.atMs - other.atMs || one.order - other.order);
      const popped = times.map(() => queue.popDue(20));
      expect(popped).toEqual(expected);
      expect(queue.popDue(Infinity)).toBeUndefined();
    }),
  );
});

test('nothing comes out before its time', () => {
  const queue = new DueQueue<string>();
  queue.push(20, 'later');
  queue.push(10, 'earlier');
  expect(queue.nextAtMs).toBe(10);
  expect([queue.popDue(9), queue.popDue(10), queue.popDue(10), queue.popDue(20)]).toEqual([
    undefined,
    'earlier',
    undefined,
    'later',
  ]);
  expect(queue.nextAtMs).toBeNull();
});
