/** What must hold between an order, its payments and what is owed back. Pure: facts in, findings out. */
import type { Difference, EventFacts, OrderFacts } from './facts.js';

export interface MoneyFinding {
  readonly detail: string;
  /** The event that tells of the money: it was committed in one transaction with what is missing or wrong. */
  readonly brokeAt: Difference['brokeAt'];
}

type Payment = OrderFacts['payments'][number];
type Refund = OrderFacts['refunds'][number];

export function moneyOf(facts: OrderFacts): readonly MoneyFinding[] {
  return [...paymentsOf(facts), ...refundsOf(facts)];
}

function paymentsOf({ events, order, payments }: OrderFacts): readonly MoneyFinding[] {
  const applied = payments.filter(({ outcome }) => outcome === 'applied');
  const [payment] = applied;
  const found: MoneyFinding[] = [];
  const add = (detail: string, transactionId: string | undefined): void =>
    void found.push({ detail, brokeAt: told(paying(events, transactionId), 'tells of this payment') });
  if (applied.length > 1) add(`is paid by ${applied.length} payments`, order.payment?.transactionId);
  if (order.payment !== null && payment?._id !== order.payment.transactionId)
    add(
      `says that ${order.payment.transactionId} paid it, and no such payment was taken down`,
      order.payment.transactionId,
    );
  if (order.payment === null && payment !== undefined)
    add(`is not paid, yet ${payment._id} was taken down as its payment`, payment._id);
  if (payment !== undefined && (payment.amountMinor !== order.totalMinor || payment.currency !== order.currency))
    add(`costs ${order.totalMinor} ${order.currency}, and ${money(payment)} were paid`, payment._id);
  return found;
}

function refundsOf({ events, order, payments, refunds }: OrderFacts): readonly MoneyFinding[] {
  const owed = payments.filter(({ outcome }) => outcome === 'surplus' || order.status === 'CANCELLED');
  const due = new Map(refunds.map((refund) => [refund._id, refund]));
  const found: MoneyFinding[] = [];
  const add = (detail: string, transactionId: string): void =>
    void found.push({ detail, brokeAt: told(owing(events, transactionId), 'tells why it is due') });
  for (const payment of owed) {
    const refund = due.get(payment._id);
    due.delete(payment._id);
    if (refund === undefined) add(`owes ${payment._id} back, and no refund is due`, payment._id);
    else if (refund.amountMinor !== payment.amountMinor || refund.currency !== payment.currency)
      add(`is to give back ${money(refund)} of ${payment._id}, which were ${money(payment)}`, payment._id);
  }
  for (const id of due.keys()) add(`does not owe ${id} back, and a refund is due`, id);
  return found;
}

function money({ amountMinor, currency }: Pick<Payment | Refund, 'amountMinor' | 'currency'>): string {
  return `${amountMinor} ${currency}`;
}

/** The event by which a payment came in. */
function paying(events: readonly EventFacts[], transactionId: string | undefined): EventFacts | undefined {
  return events.find((event) => event.transactionId !== null && event.transactionId === transactionId);
}

/** The event by which a payment was to be given back: by which it came in too much, or the cancellation of what it had paid. */
function owing(events: readonly EventFacts[], transactionId: string): EventFacts | undefined {
  const surplus = paying(events, transactionId);
  return surplus?.eventType === 'SurplusPaymentReceived'
    ? surplus
    : events.find(({ eventType }) => eventType === 'OrderCancelled');
}

function told(event: EventFacts | undefined, why: string): Difference['brokeAt'] {
  return event === undefined ? null : { eventId: event.eventId, eventType: event.eventType, why };
}
