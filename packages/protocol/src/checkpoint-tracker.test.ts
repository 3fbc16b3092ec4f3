import fc from 'fast-check';
import { expect, test } from 'vitest';
import { CheckpointTracker, type Delivery } from './checkpoint-tracker.js';
import { resumeToken } from './ids.js';

const token = (position: number): ReturnType<typeof resumeToken> => resumeToken(`t${position}`);

function deliver(tracker: CheckpointTracker, count: number): Delivery[] {
  return Array.from({ length: count }, (_, index) => tracker.deliver(token(index)));
}

test('the token moves to the end of the longest settled prefix', () => {
  const tracker = new CheckpointTracker(10);
  const [first, second, third] = deliver(tracker, 3);
  second?.settle();
  expect(tracker.advance()).toBeNull();
  first?.settle();
  expect(tracker.advance()).toBe('t1');
  expect(tracker.advance()).toBeNull();
  third?.settle();
  expect(tracker.advance()).toBe('t2');
});

test('the token of an idle stream moves on only when nothing delivered before it is open', () => {
  const tracker = new CheckpointTracker(10);
  tracker.endBatch(token(1));
  expect(tracker.advance()).toBe('t1');
  const open = tracker.deliver(token(2));
  tracker.endBatch(token(3));
  tracker.endBatch(token(4));
  expect(tracker.advance()).toBeNull();
  open.settle();
  expect(tracker.advance()).toBe('t4');
});

test('empty batches behind an open row take one place together', () => {
  const tracker = new CheckpointTracker(3);
  tracker.deliver(token(0));
  for (let batch = 1; batch < 1_000; batch += 1) tracker.endBatch(token(batch));
  expect(tracker.size).toBe(2);
  expect(tracker.hasRoom).toBe(true);
});

test('a tracker is full when so much is open, and has room again when the prefix has moved', () => {
  const tracker = new CheckpointTracker(2);
  const [first] = deliver(tracker, 2);
  expect(tracker.hasRoom).toBe(false);
  first?.settle();
  tracker.advance();
  expect(tracker.hasRoom).toBe(true);
});

test('in whatever order rows are settled, no token ever covers an open one, and in the end all is covered', () => {
  const order = fc.integer({ min: 1, max: 40 }).chain((count) =>
    fc.shuffledSubarray(
      Array.from({ length: count }, (_, index) => index),
      { minLength: count },
    ),
  );
  fc.assert(
    fc.property(order, (settledInOrder) => {
      const tracker = new CheckpointTracker(100);
      const deliveries = deliver(tracker, settledInOrder.length);
      const open = new Set(settledInOrder);
      let covered = -1;
      for (const position of settledInOrder) {
        deliveries[position]?.settle();
        open.delete(position);
        const moved = tracker.advance();
        if (moved !== null) covered = Number(moved.slice(1));
        expect(Math.min(...open)).toBe(open.size === 0 ? Infinity : covered + 1);
      }
      expect(covered).toBe(settledInOrder.length - 1);
    }),
  );
});
