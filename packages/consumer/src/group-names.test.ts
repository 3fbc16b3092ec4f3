import { expect, test } from 'vitest';
import { assertOneGroup } from './group-names.js';
import type { GroupStore, Subscriber } from './ports.js';
import type { GroupProducer } from './ledger-ports.js';

function ports({ store, subscriber, registry }: { store?: string; subscriber?: string; registry?: string }) {
  return {
    store: { group: store } as unknown as GroupStore<null>,
    subscribers: [{ group: subscriber } as unknown as Subscriber],
    ledgerSweep: {
      gaps: { find: () => Promise.reject(new Error()) },
      producers: [{ registry: { group: registry } }] as unknown as GroupProducer[],
    },
  };
}

test('ports of one group, and ports that do not tell, are taken', () => {
  expect(() => {
    assertOneGroup('points', ports({ store: 'points', subscriber: 'points', registry: 'points' }));
  }).not.toThrow();
  expect(() => {
    assertOneGroup('points', ports({}));
  }).not.toThrow();
});

test('a generation has its own name at the broker, and only there', () => {
  const named = { store: 'points@2', subscriber: 'points-generation-2', registry: 'points@2' };
  expect(() => {
    assertOneGroup('points@2', ports(named));
  }).not.toThrow();
});

test.each([
  [{ store: 'stock' }, /the group store is of group stock; accepted there: points/],
  [{ subscriber: 'stock' }, /a subscriber is of group stock/],
  [{ registry: 'stock' }, /the entry in a producer's groups is of group stock/],
])('%o is refused where the consumer is of another group', (named, message) => {
  expect(() => {
    assertOneGroup('points', ports(named));
  }).toThrow(message);
  expect(() => {
    assertOneGroup('points', ports(named));
  }).toThrow(expect.objectContaining({ code: 'NP_CONFIG_INVALID' }));
});
