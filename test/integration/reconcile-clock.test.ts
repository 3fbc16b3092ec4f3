import { settledBefore } from '@nightporter/cli';
import { connectMongo, createDatabaseClock } from '@nightporter/mongo';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { sharedStack } from '../support/stack.js';
import { startOrdersApi } from './orders-api.support.js';

const HOUR_MS = 3_600_000;
const order = { customerId: 'c', currency: 'EUR', lines: [{ productId: 'p', quantity: 1, unitPriceMinor: 10 }] };

afterEach(() => {
  vi.useRealTimers();
});

describe('What is at rest', () => {
  it.each([
    ['an hour ahead', HOUR_MS],
    ['an hour behind', -HOUR_MS],
  ])('is told by the database’s clock, though that of the producer and of whoever asks is %s', async (_name, offMs) => {
    const api = await startOrdersApi();
    const client = await connectMongo({ uri: sharedStack().mongodbUri });
    try {
      const before = await createDatabaseClock(client).read();
      // Only the time of day: timers go on.
      vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + offMs });
      const { orderId } = (await api.post('/orders', order)).body;
      const place = { _id: String(orderId) };
      const created = await api.orders.findOne(place);
      await vi.waitFor(async () => {
        const now = await createDatabaseClock(client).read();
        expect(now.getTime()).toBeGreaterThan(created!.updatedAt.getTime());
      });
      await api.post(`/orders/${String(orderId)}/cancel`, {});
      const cancelled = await api.orders.findOne(place);
      const settled = await settledBefore(client, 0);
      const earlier = await settledBefore(client, 60);
      vi.useRealTimers();
      const after = await createDatabaseClock(client).read();
      const moments = [before, created!.createdAt, created!.updatedAt, cancelled!.updatedAt, settled, after];
      const times = moments.map((moment) => moment.getTime());
      expect(times).toEqual(times.toSorted((one, other) => one - other));
      expect(cancelled!.createdAt).toEqual(created!.createdAt);
      expect(cancelled!.updatedAt).not.toEqual(created!.updatedAt);
      expect(cancelled!.status).toBe('CANCELLED');
      expect(earlier.getTime()).toBeLessThan(before.getTime());
    } finally {
      vi.useRealTimers();
      await client.close();
      await api.close();
    }
  });
});
