import type { Rejection } from '@nightporter/orders-api';

/** The customer was faster: a cancelled order is not completed, a completed one not cancelled. Nothing is left to do. */
export function wasDecidedBefore(rejection: Rejection): boolean {
  return rejection.reason === 'transition' && (rejection.status === 'CANCELLED' || rejection.status === 'COMPLETED');
}

/** An order that is not there, or not as far as its shipment: the event must not pass for handled. */
export function cannotBeCarriedOn(orderId: string, rejection: Rejection): Error {
  const { reason, ...rest } = rejection;
  return new Error(`Order ${orderId} refuses what the event asks for: ${reason} ${JSON.stringify(rest)}.`);
}
