import { reconcile, type Reconciliation } from '@nightporter/cli';
import { ordersCatalogue } from '@nightporter/contracts';
import { createRetention } from '@nightporter/ledger';
import {
  CONSUMER_COLLECTIONS,
  OUTBOX_COLLECTIONS,
  connectMongo,
  createArchiveFolder,
  ensureOutboxCollections,
  positionId,
  type ArchiveFiles,
} from '@nightporter/mongo';
import { ordersCollections, type OrderDocument } from '@nightporter/orders-api';
import { createOutbox } from '@nightporter/outbox';
import { aggregateKey, namespace } from '@nightporter/protocol';
import type { MongoClient } from 'mongodb';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { sharedStack, uniqueName } from '../support/stack.js';

const groups = { orders: 'orders', inventory: 'inventory', shipping: 'shipping', points: 'points' };
const aggregate = { aggregateType: 'order', aggregateId: 'o1' } as const;

let client: MongoClient;
let databases: Record<keyof typeof groups, string>;
let folder: string;
let paidId: string;

beforeEach(async () => {
  client = await connectMongo({ uri: sharedStack().mongodbUri });
  folder = await mkdtemp(join(tmpdir(), 'nightporter-'));
  databases = {
    orders: uniqueName('o'),
    inventory: uniqueName('i'),
    shipping: uniqueName('s'),
    points: uniqueName('p'),
  };
  await ensureOutboxCollections(client, databases.orders);
  const outbox = createOutbox({ client, database: databases.orders, source: 'orders', catalogue: ordersCatalogue });
  const lines = [{ productId: 'apple', quantity: 1, unitPriceMinor: 250 }];
  await outbox.transaction(({ emit }) =>
    emit({
      ...aggregate,
      eventType: 'OrderCreated',
      payload: { customerId: 'c', currency: 'EUR', lines, totalMinor: 250 },
    }),
  );
  const money = { amountMinor: 250, currency: 'EUR' };
  const payload = { transactionId: 't1', ...money };
  ({ eventId: paidId } = await outbox.transaction(({ emit }) =>
    emit({ ...aggregate, eventType: 'OrderPaid', payload }),
  ));
  await client
    .db(databases.orders)
    .collection(OUTBOX_COLLECTIONS.outbox)
    .updateMany({}, { $set: { status: 'PUBLISHED', publishedAt: new Date(0) }, $unset: { unsettled: true } });
  // Paid, and nobody took the payment down; nor has anybody else done anything.
  const order = {
    _id: 'o1',
    version: 2,
    status: 'PAID',
    customerId: 'c',
    currency: 'EUR',
    lines,
    totalMinor: 250,
  } as const;
  const dates = { createdAt: new Date(0), updatedAt: new Date(0) };
  const { orders } = ordersCollections(client.db(databases.orders));
  const document: OrderDocument = { ...order, payment: payload, cancellation: null, ...dates };
  await orders.insertOne(document);
});
afterEach(async () => {
  for (const name of Object.values(databases)) await client.db(name).dropDatabase();
  await client.close();
  await rm(folder, { recursive: true, force: true });
});

async function retain(destination: Parameters<typeof createRetention>[0]['destination']): Promise<void> {
  const run = {
    client,
    namespace: namespace(`${databases.orders}.outbox`),
    destination,
    afterMs: 0,
    marginMs: 0,
    pauseMs: 0,
  };
  const operator = { by: 'ada', reason: 'in a test' };
  expect(await createRetention(run).run({ forced: true, operator })).toMatchObject({ rows: 2 });
}

async function compared(archive?: ArchiveFiles): Promise<Reconciliation> {
  const query = { client, databases, groups, since: null, until: new Date() };
  return reconcile({ ...query, ...(archive === undefined ? {} : { archive }) });
}

function brokenAt({ differences }: Reconciliation, between: string) {
  return differences.find((difference) => difference.between === between)?.brokeAt ?? null;
}

describe('Reconciliation after retention', () => {
  it.each(['collections', 'files'] as const)('names events that were moved to %s', async (kind) => {
    const files = createArchiveFolder(folder);
    await retain(kind === 'files' ? { kind, files } : { kind, bucket: 'day' });
    const found = await compared(files);
    expect(brokenAt(found, 'orders and payments')).toMatchObject({ eventId: paidId, eventType: 'OrderPaid' });
    expect(found.notKnown).toEqual([]);
  });

  it('says how many events lie in files that it cannot read, and why', async () => {
    await retain({ kind: 'files', files: createArchiveFolder(folder) });
    const found = await compared();
    expect(brokenAt(found, 'orders and payments')).toBeNull();
    expect(found.notKnown).toEqual([
      expect.stringMatching(
        /^2 events lie in archive files that cannot be read .*no archive folder is configured here\.$/,
      ),
    ]);
  });

  it('says how many events are nowhere any more', async () => {
    await retain({ kind: 'delete' });
    expect((await compared()).notKnown).toEqual([expect.stringMatching(/^2 events are in neither outbox nor archive/)]);
  });

  it('does not call an event unsettled whose record in the group has expired', async () => {
    expect(brokenAt(await compared(), 'orders and points')).toMatchObject({
      eventType: 'OrderCreated',
      why: 'has not been settled by group points',
    });
    const key = aggregateKey({ source: 'orders', ...aggregate });
    await client
      .db(databases.points)
      .collection<{ _id: string; version: number; startVersion: number }>(CONSUMER_COLLECTIONS.positions)
      .insertOne({ _id: positionId('points', key), version: 2, startVersion: 0 });
    expect(brokenAt(await compared(), 'orders and points')).toBeNull();
  });
});
