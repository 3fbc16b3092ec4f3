import { createDatabaseClock } from '@nightporter/mongo';
import type { RefundDocument } from '@nightporter/orders-api';
import type { MongoClient } from 'mongodb';
import { createEventReader } from './events.js';
import type { Difference } from './facts.js';
import { changedSince, readOrderFacts, readPointSums, readStockSums, type FactsQuery } from './read-facts.js';
import { differencesOf, sumDifferences } from './rules.js';
import { readStrays, strayDifferences } from './strays.js';

export interface Reconciliation {
  readonly orders: number;
  /** Money that customers are to get back. It is what the rules of the shop ask for, and no difference. */
  readonly refundsDue: readonly Pick<RefundDocument, '_id' | 'orderId' | 'amountMinor' | 'currency' | 'cause'>[];
  /** At most {@link DIFFERENCES_MAX}; `differencesTotal` counts all. */
  readonly differences: readonly Difference[];
  readonly differencesTotal: number;
  /** What could not be found out, in whole sentences. */
  readonly notKnown: readonly string[];
}

export const DIFFERENCES_MAX = 1_000;

/** The moment, on the database's clock, which also dates the orders, `seconds` ago: what has not changed since is at rest. */
export async function settledBefore(client: MongoClient, seconds: number): Promise<Date> {
  const now = await createDatabaseClock(client).read();
  return new Date(now.getTime() - seconds * 1_000);
}

/**
 * The time first, then the files: what is landed while they are read is of orders that are not at rest yet, and is not
 * looked for in vain.
 */
export async function readAtRest<Reading>(ports: {
  settledBefore: () => Promise<Date>;
  readWarehouse: () => Promise<Reading>;
}): Promise<{ until: Date; warehouse: Reading }> {
  const until = await ports.settledBefore();
  return { until, warehouse: await ports.readWarehouse() };
}

/**
 * Compares orders, payments, stock, points and shipments, and the warehouse and what customers were told where these are given, in batches; orders that
 * change meanwhile are left to the next time. Sums
 * over all orders, and whether everything that names an order has one, are compared only without `since`; sums are exact only while nothing is under way.
 */
export async function reconcile(
  query: FactsQuery,
  progress: (orders: number) => void = () => undefined,
): Promise<Reconciliation> {
  const differences: Difference[] = [];
  const refundsDue: RefundDocument[] = [];
  const events = createEventReader(query);
  let orders = 0;
  let differencesTotal = 0;
  const add = (found: readonly Difference[]): void => {
    differencesTotal += found.length;
    differences.push(...found.slice(0, DIFFERENCES_MAX - differences.length));
  };
  for await (const batch of readOrderFacts(query, events)) {
    const different = batch
      .map((facts) => ({ order: facts.order, found: differencesOf(facts, query.groups) }))
      .filter(({ found }) => found.length > 0);
    const changed = await changedSince(
      query,
      different.map(({ order }) => order),
    );
    for (const { found, order } of different) if (!changed.has(order._id)) add(found);
    for (const { refunds } of batch) refundsDue.push(...refunds);
    orders += batch.length;
    progress(orders);
  }
  if (query.since === null) {
    for await (const strays of readStrays(query)) add(await strayDifferences(strays, events));
    add(sumDifferences('stock and reservations', await readStockSums(query)));
    add(sumDifferences('points and awards', await readPointSums(query)));
  }
  return {
    orders,
    refundsDue: refundsDue.map(({ _id, orderId, amountMinor, currency, cause }) => ({
      _id,
      orderId,
      amountMinor,
      currency,
      cause,
    })),
    differences,
    differencesTotal,
    notKnown: events.notKnown(),
  };
}
