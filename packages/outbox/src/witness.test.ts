import { aggregateKey, aggregateVersion, eventId } from '@nightporter/protocol';
import { describe, expect, it } from 'vitest';
import { testimonyOf, type Receipt, type Testimony } from './witness.js';

function receipt(aggregateId: string, version: number): Receipt {
  const identity = { source: 's', aggregateType: 't', aggregateId };
  return {
    ...identity,
    eventId: eventId(`${aggregateId}-${version}`),
    aggregate: aggregateKey(identity),
    aggregateVersion: aggregateVersion(version),
  };
}

const first = receipt('a', 3);
const second = receipt('b', 1);

describe('the testimony of the ledger about a transaction', () => {
  it.each<[string, number, Record<string, number>, string[], Testimony]>([
    ['has its events: committed', 2, {}, [], 'committed'],
    ['has one of its events, the other was deleted: committed', 1, { a: 3, b: 1 }, [], 'committed'],
    ['has never raised its heads: absent', 0, { a: 2 }, [], 'absent'],
    ['has raised one of its heads only: absent', 0, { a: 3 }, [], 'absent'],
    ['gave its versions to others: absent', 0, { a: 4, b: 1 }, ['other'], 'absent'],
    ['has raised its heads, and nothing stands there: unclear', 0, { a: 3, b: 1 }, [], 'unclear'],
  ])('%s', (_name, eventsFound, versions, holders, expected) => {
    const heads = new Map(
      Object.entries(versions).map(([id, version]) => [receipt(id, version).aggregate, version] as const),
    );
    const evidence = { eventsFound, heads, holders: holders.map(eventId) };
    expect(testimonyOf([first, second], evidence)).toBe(expected);
  });
});
