import { reconcile } from '@nightporter/cli';
import { connectMongo } from '@nightporter/mongo';
import { expect, it } from 'vitest';
import { sharedStack, uniqueName } from '../support/stack.js';
import { startOrdersApi } from './orders-api.support.js';

const order = { customerId: 'c', currency: 'EUR', lines: [{ productId: 'p', quantity: 1, unitPriceMinor: 10 }] };

it('An order that changes while it is compared is left to the next time', async () => {
  const api = await startOrdersApi();
  const client = await connectMongo({ uri: sharedStack().mongodbUri });
  try {
    const ids: string[] = [];
    while (ids.length < 2) ids.push(String((await api.post('/orders', order)).body['orderId']));
    const nobody = uniqueName('nobody');
    const differences = async (meanwhile: () => Promise<unknown>): Promise<readonly (string | null)[]> => {
      const found = await reconcile({
        client,
        databases: { orders: api.orders.dbName, inventory: nobody, shipping: nobody, points: nobody },
        groups: { inventory: nobody, shipping: nobody, orders: nobody, points: nobody },
        since: null,
        until: new Date(Date.now() + 60_000),
        warehouse: {
          async landedOf() {
            await meanwhile();
            return new Map();
          },
        },
      });
      return [...new Set(found.differences.map(({ orderId }) => orderId))].sort();
    };
    // No worker runs, so that both have neither stock nor points.
    expect(await differences(() => Promise.resolve())).toEqual(ids.toSorted());
    expect(await differences(() => api.post(`/orders/${ids[1]!}/cancel`, {}))).toEqual([ids[0]]);
  } finally {
    await client.close();
    await api.close();
  }
});
