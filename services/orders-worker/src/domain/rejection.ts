import type { Rejection } from '@nightporter/orders-api';

/**
 * The order is where the event would bring it, or was cancelled before it was completed: nothing is left to do. An order that was completed though its
 * stock is short is not among them: its customer has paid, and gets neither goods nor money unless somebody looks at it.
 */
export function wasDecidedBefore(rejection: Rejection): boolean {
  if (rejection.reason !== 'transition') return false;
  return rejection.status === 'CANCELLED' || (rejection.command === 'complete' && rejection.status === 'COMPLETED');
}

/** An order that is not there, or not as far as its shipment: the event must not pass for handled. */
export function cannotBeCarriedOn(orderId: string, rejection: Rejection): Error {
  const { reason, ...rest } = rejection;
  return new Error(`Order ${orderId} refuses what the event asks for: ${reason} ${JSON.stringify(rest)}.`);
}
