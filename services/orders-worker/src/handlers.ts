import type { ordersCatalogue } from '@nightporter/contracts';
import { applyCommand, type OrderCommand, type OrdersCollections } from '@nightporter/orders-api';
import type { ContextOf, HandlersOf } from '@nightporter/worker';
import { shortageReason } from './domain/reason.js';
import { cannotBeCarriedOn, wasDecidedBefore } from './domain/rejection.js';

type Events = typeof ordersCatalogue.events;
type Context = ContextOf<Events, 'InventoryRejected' | 'ShipmentDelivered'>;

/**
 * Carries orders on: one whose stock is short is cancelled, one that has been delivered is completed. Strategy: the order itself. Its
 * aggregate decides what a command does in its state, and its version is the condition of the write, so that a command that is too late
 * changes nothing.
 */
export function createOrdersHandlers(collections: OrdersCollections): HandlersOf<Events> {
  return {
    InventoryRejected: (context) => {
      const reason = shortageReason(context.event.data.shortages);
      return command(context, { kind: 'cancel', reason }, collections);
    },
    ShipmentDelivered: (context) => command(context, { kind: 'complete' }, collections),
  };
}

async function command(context: Context, order: OrderCommand, collections: OrdersCollections): Promise<void> {
  const { orderId } = context.event.data;
  const outcome = await applyCommand(
    {
      session: context.session,
      emit: ({ eventType, payload }, place) => context.emit({ ...place, eventType, payload }),
    },
    { orderId, command: order, expected: { kind: 'any' } },
    collections,
  );
  if (outcome.kind !== 'rejected') return;
  const { rejection } = outcome;
  if (!wasDecidedBefore(rejection)) throw cannotBeCarriedOn(orderId, rejection);
  context.logger.info({ orderId, rejection }, 'order left as it is');
}
