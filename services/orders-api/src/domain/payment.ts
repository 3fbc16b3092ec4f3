/**
 * Payments and what is owed back, as they follow from an order's events. A payment provider's transaction number stands for one
 * payment of one order for ever, whoever repeats it.
 */
import type { Decision, Order, OrderCommand, OrderEvent, SurplusCause } from './order.js';

export interface Payment {
  /** The payment provider's number. */
  readonly transactionId: string;
  readonly orderId: string;
  readonly amountMinor: number;
  readonly currency: string;
  /** `applied`: the order is paid by it. `surplus`: the order did not call for it, so that it is owed back. */
  readonly outcome: 'applied' | 'surplus';
}

/** Money that a customer is to get back. */
export interface RefundDue {
  readonly transactionId: string;
  readonly orderId: string;
  readonly amountMinor: number;
  readonly currency: string;
  readonly cause: 'cancelled-after-payment' | SurplusCause;
}

/** The decision on a payment whose number is known already; null when the order decides. */
export function decideKnown(command: OrderCommand, orderId: string, known: Payment | null): Decision | null {
  if (known === null || (command.kind !== 'pay' && command.kind !== 'receive-payment')) return null;
  const isRepeat =
    known.orderId === orderId &&
    (command.amountMinor ?? known.amountMinor) === known.amountMinor &&
    (command.kind === 'receive-payment' ? command.currency === known.currency : known.outcome === 'applied');
  if (isRepeat) return { kind: 'unchanged' };
  return { kind: 'rejected', rejection: { reason: 'payment-known', transactionId: command.transactionId } };
}

/** The payments and refunds that an event of the order `before` brings; null `before` is an order that begins. */
export function moneyOf(
  event: OrderEvent,
  { before, orderId }: { before: Order | null; orderId: string },
): { readonly payments: readonly Payment[]; readonly refunds: readonly RefundDue[] } {
  switch (event.eventType) {
    case 'OrderPaid':
      return { payments: [{ ...event.payload, orderId, outcome: 'applied' }], refunds: [] };
    case 'SurplusPaymentReceived': {
      const { cause, ...payment } = event.payload;
      return {
        payments: [{ ...payment, orderId, outcome: 'surplus' }],
        refunds: [{ ...payment, orderId, cause }],
      };
    }
    case 'OrderCancelled': {
      if (before?.payment == null) return { payments: [], refunds: [] };
      const { currency, payment } = before;
      return { payments: [], refunds: [{ ...payment, currency, orderId, cause: 'cancelled-after-payment' }] };
    }
    case 'OrderCreated':
    case 'OrderCompleted':
      return { payments: [], refunds: [] };
  }
}
