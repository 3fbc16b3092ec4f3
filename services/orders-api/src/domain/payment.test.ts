import { describe, expect, it } from 'vitest';
import { decide, evolve, type Order, type OrderCommand } from './order.js';
import { decideKnown, moneyOf, type Payment } from './payment.js';

const known: Payment = { transactionId: 't1', orderId: 'o1', amountMinor: 125, currency: 'EUR', outcome: 'applied' };
const receive: OrderCommand = { kind: 'receive-payment', transactionId: 't1', amountMinor: 125, currency: 'EUR' };

describe('a payment whose number is known', () => {
  it.each<[string, OrderCommand, string, Payment, string]>([
    ['is a repeat when all of it is the same', receive, 'o1', known, 'unchanged'],
    ['is a repeat also where it was owed back', receive, 'o1', { ...known, outcome: 'surplus' }, 'unchanged'],
    ['is refused for another order', receive, 'o2', known, 'rejected'],
    ['is refused with another amount', { ...receive, amountMinor: 124 }, 'o1', known, 'rejected'],
    ['is refused in another currency', { ...receive, currency: 'USD' }, 'o1', known, 'rejected'],
    [
      'is a repeat without its amount',
      { kind: 'pay', transactionId: 't1', amountMinor: null },
      'o1',
      known,
      'unchanged',
    ],
    [
      'cannot pay an order once it is owed back',
      { kind: 'pay', transactionId: 't1', amountMinor: 125 },
      'o1',
      { ...known, outcome: 'surplus' },
      'rejected',
    ],
  ])('%s', (_sentence, command, orderId, payment, kind) => {
    expect(decideKnown(command, orderId, payment)?.kind).toBe(kind);
  });

  it('leaves every other command to the order', () => {
    expect(decideKnown({ kind: 'cancel', reason: 'r' }, 'o1', known)).toBeNull();
    expect(decideKnown(receive, 'o1', null)).toBeNull();
  });
});

describe('what is owed back', () => {
  const created = run(null, {
    kind: 'create',
    orderId: 'o1',
    customerId: 'c1',
    currency: 'EUR',
    lines: [{ productId: 'apple', quantity: 5, unitPriceMinor: 25 }],
  });
  const cancel: OrderCommand = { kind: 'cancel', reason: 'r' };

  it('is nothing while an order is paid once and not cancelled', () => {
    expect(money(created, receive)).toEqual({ payments: [known], refunds: [] });
    expect(money(created, cancel)).toEqual({ payments: [], refunds: [] });
  });

  it('is the payment of an order that is cancelled after it', () => {
    const { transactionId, orderId, amountMinor, currency } = known;
    const refund = { transactionId, orderId, amountMinor, currency, cause: 'cancelled-after-payment' };
    expect(money(run(created, receive), cancel)).toEqual({ payments: [], refunds: [refund] });
  });

  it.each([
    ['cancelled', [cancel], receive],
    ['paid-already', [receive], { ...receive, transactionId: 't2' }],
    ['amount-mismatch', [], { ...receive, amountMinor: 1 }],
  ] as const)('is a payment that the order does not call for: %s', (cause, before, last) => {
    const order = before.reduce<Order>((state, command) => run(state, command), created);
    const { payments, refunds } = money(order, last);
    const paid = { transactionId: last.transactionId, orderId: 'o1', amountMinor: last.amountMinor, currency: 'EUR' };
    expect(payments).toEqual([{ ...paid, outcome: 'surplus' }]);
    expect(refunds).toEqual([{ ...paid, cause }]);
  });
});

function eventOf(state: Order | null, command: OrderCommand) {
  const decision = decide(command, state);
  if (decision.kind !== 'events') throw new Error(`${command.kind} is ${decision.kind}`);
  return decision.events[0];
}

function run(state: Order | null, command: OrderCommand): Order {
  return evolve(state, eventOf(state, command));
}

function money(before: Order, command: OrderCommand) {
  return moneyOf(eventOf(before, command), { before, orderId: before.orderId });
}
