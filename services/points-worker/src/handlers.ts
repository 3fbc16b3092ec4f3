import type { ordersCatalogue } from '@nightporter/contracts';
import { NightporterError } from '@nightporter/protocol';
import type { HandlersOf } from '@nightporter/worker';
import type { ClientSession } from 'mongodb';
import type { PointsCollections } from './documents.js';
import { award, reverse, type Award, type AwardStep } from './domain/points.js';

type Events = typeof ordersCatalogue.events;

/**
 * Awards points for a paid order and takes them back when it is cancelled. Strategy: optimistic version. What an order brought keeps the version of the
 * event that it took up last, and takes up only a newer one. An account, which is made from many orders, counts its changes, and is written only over
 * the version that was read; where two orders of one customer meet, one of them is decided anew.
 */
export function createPointsHandlers(collections: PointsCollections): HandlersOf<Events> {
  return {
    OrderCreated: async ({ event, session }) => {
      const { customerId } = event.data;
      await collections.awards.updateOne(
        { _id: event.aggregateId },
        { $setOnInsert: { customerId, points: 0, state: 'open', version: event.aggregateVersion } },
        { session, upsert: true },
      );
    },
    OrderPaid: async ({ event, session }) => {
      const before = await awardOf(event.aggregateId, session, collections);
      const { aggregateVersion: version } = event;
      if (before.version < version)
        await change(before, { version, step: award(before, event.data.amountMinor) }, session, collections);
    },
    OrderCancelled: async ({ event, session }) => {
      const before = await awardOf(event.aggregateId, session, collections);
      const { aggregateVersion: version } = event;
      if (before.version < version) await change(before, { version, step: reverse(before) }, session, collections);
    },
  };
}

type Versioned = Award & { readonly version: number };

async function awardOf(orderId: string, session: ClientSession, { awards }: PointsCollections): Promise<Versioned> {
  const document = await awards.findOne({ _id: orderId }, { session });
  if (document !== null) {
    const { customerId, points, state, version } = document;
    return { orderId, customerId, points, state, version };
  }
  // OrderCreated is version 1, and the group began with it, or with orders that were placed before it did.
  throw new NightporterError(
    'NP_INTERNAL',
    `order ${orderId} was placed before this group began, so that its customer is unknown`,
  );
}

async function change(
  before: Versioned,
  { step, version: taken }: { readonly step: AwardStep; readonly version: number },
  session: ClientSession,
  { awards, accounts }: PointsCollections,
): Promise<void> {
  if (step.kind === 'nothing') return;
  const { orderId, customerId } = before;
  const points = step.state === 'awarded' ? step.points : before.points;
  const written = await awards.updateOne(
    { _id: orderId, version: before.version },
    { $set: { state: step.state, points, version: taken } },
    { session },
  );
  assertOne(written.modifiedCount, `order ${orderId}`);
  const account = await accounts.findOne({ _id: customerId }, { session });
  if (account === null) {
    await accounts.insertOne({ _id: customerId, balance: step.points, version: 1 }, { session });
    return;
  }
  const { balance, version } = account;
  const moved = await accounts.updateOne(
    { _id: customerId, version },
    { $set: { balance: balance + step.points, version: version + 1 } },
    { session },
  );
  assertOne(moved.modifiedCount, `customer ${customerId}`);
}

function assertOne(modified: number, what: string): void {
  if (modified !== 1)
    throw new NightporterError('NP_TRANSACTION_CONFLICT', `the points of ${what} have changed meanwhile`);
}
