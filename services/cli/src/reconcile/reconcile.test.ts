import { expect, it } from 'vitest';
import { readAtRest } from './reconcile.js';

it('calls nothing at rest that may have been landed after the files of the warehouse were read', async () => {
  let now = 0;
  const { until, warehouse } = await readAtRest({
    settledBefore: () => Promise.resolve(new Date(now)),
    readWarehouse: () => {
      const readAt = new Date(now);
      now += 60_000;
      return Promise.resolve({ readAt });
    },
  });
  expect(until.getTime()).toBeLessThanOrEqual(warehouse.readAt.getTime());
});
