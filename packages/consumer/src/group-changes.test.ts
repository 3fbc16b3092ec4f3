import { aggregateKey, aggregateVersion } from '@nightporter/protocol';
import { expect, test } from 'vitest';
import { withPositionsOnce } from './group-changes.js';
import type { GroupChange } from './ports.js';

const keyOf = (aggregateId: string): ReturnType<typeof aggregateKey> =>
  aggregateKey({ source: 'orders', aggregateType: 'order', aggregateId });

const position = (aggregateId: string, version: number): GroupChange => ({
  kind: 'position',
  aggregate: keyOf(aggregateId),
  position: { version, startVersion: 0, state: 'open' },
});

test('a transaction writes the last position of each aggregate once, and every other change in its place', () => {
  const unpark: GroupChange = { kind: 'unpark', aggregate: keyOf('a'), version: aggregateVersion(2) };
  const changes = [position('a', 1), position('b', 4), unpark, position('a', 2), position('b', 5)];
  expect(withPositionsOnce(changes)).toEqual([position('a', 2), position('b', 5), unpark]);
});
