import { MongoClient } from 'mongodb';
import { expect, it } from 'vitest';
import { historiesOf } from './histories.js';

it('The oplog of each deployment is read once, for all producers that are on it', async () => {
  // Nobody connects.
  const [here, there] = ['here:27017', 'there:27017'].map((host) => new MongoClient(`mongodb://${host}`));
  const asked: string[] = [];
  const histories = await historiesOf(
    [
      { client: here!, database: 'orders' },
      { client: there!, database: 'shipping' },
      { client: here!, database: 'inventory' },
    ],
    ({ client, database }) => {
      asked.push(database);
      return Promise.resolve({ kind: 'known', reachMs: client === here ? 5_000 : 7_000 });
    },
  );
  expect(histories).toEqual([
    { of: 'here:27017', producers: ['orders', 'inventory'], history: { kind: 'known', reachMs: 5_000 } },
    { of: 'there:27017', producers: ['shipping'], history: { kind: 'known', reachMs: 7_000 } },
  ]);
  expect(asked).toEqual(['orders', 'shipping']);
});
