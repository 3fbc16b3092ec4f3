import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { decide, evolve, totalOf, type Decision, type Order, type OrderCommand, type OrderStatus } from './order.js';

const lines = [
  { productId: 'apple', quantity: 3, unitPriceMinor: 25 },
  { productId: 'pear', quantity: 1, unitPriceMinor: 50 },
];
const create: OrderCommand = { kind: 'create', orderId: 'o1', customerId: 'c1', currency: 'EUR', lines };
const pay: OrderCommand = { kind: 'pay', transactionId: 't1', amountMinor: 125 };
const receive: OrderCommand = { kind: 'receive-payment', transactionId: 't1', amountMinor: 125, currency: 'EUR' };
const cancel: OrderCommand = { kind: 'cancel', reason: 'changed my mind' };
const complete: OrderCommand = { kind: 'complete' };

/** Carries commands out one after another. */
function after(...commands: readonly OrderCommand[]): Order | null {
  return commands.reduce<Order | null>((state, command) => apply(state, decide(command, state)), null);
}

function apply(state: Order | null, decision: Decision): Order | null {
  return decision.kind === 'events' ? decision.events.reduce<Order | null>(evolve, state) : state;
}

const states: Record<OrderStatus, Order | null> = {
  CREATED: after(create),
  PAID: after(create, pay),
  COMPLETED: after(create, pay, complete),
  CANCELLED: after(create, cancel),
};

describe('an order', () => {
  it.each<[OrderCommand, OrderStatus, string]>([
    [create, 'CREATED', 'order-exists'],
    [create, 'CANCELLED', 'order-exists'],
    [pay, 'CREATED', 'OrderPaid'],
    [pay, 'PAID', 'unchanged'],
    [pay, 'COMPLETED', 'unchanged'],
    [pay, 'CANCELLED', 'transition'],
    [{ ...pay, transactionId: 't2' }, 'PAID', 'paid-otherwise'],
    [{ ...pay, transactionId: 't2' }, 'COMPLETED', 'paid-otherwise'],
    [{ ...pay, amountMinor: 124 }, 'CREATED', 'amount-mismatch'],
    [{ ...pay, amountMinor: null }, 'CREATED', 'OrderPaid'],
    [receive, 'CREATED', 'OrderPaid'],
    [receive, 'PAID', 'unchanged'],
    [receive, 'COMPLETED', 'unchanged'],
    [receive, 'CANCELLED', 'SurplusPaymentReceived'],
    [{ ...receive, transactionId: 't2' }, 'PAID', 'SurplusPaymentReceived'],
    [{ ...receive, transactionId: 't2' }, 'COMPLETED', 'SurplusPaymentReceived'],
    [{ ...receive, amountMinor: 124 }, 'CREATED', 'SurplusPaymentReceived'],
    [{ ...receive, currency: 'USD' }, 'CREATED', 'SurplusPaymentReceived'],
    [cancel, 'CREATED', 'OrderCancelled'],
    [cancel, 'PAID', 'OrderCancelled'],
    [cancel, 'COMPLETED', 'transition'],
    [cancel, 'CANCELLED', 'transition'],
    [complete, 'CREATED', 'transition'],
    [complete, 'PAID', 'OrderCompleted'],
    [complete, 'COMPLETED', 'transition'],
    [complete, 'CANCELLED', 'transition'],
  ])('answers %o in state %s with %s', (command, status, expected) => {
    expect(states[status]?.status).toBe(status);
    expect(nameOf(decide(command, states[status]))).toBe(expected);
  });

  it.each([[pay], [cancel], [complete]])('that does not exist rejects %o', (command) => {
    expect(decide(command, null)).toEqual({ kind: 'rejected', rejection: { reason: 'order-unknown' } });
  });

  it('carries its lines, its exact total and its payment', () => {
    expect(after(create, pay)).toEqual({
      orderId: 'o1',
      version: 2,
      status: 'PAID',
      customerId: 'c1',
      currency: 'EUR',
      lines,
      totalMinor: 125,
      payment: { transactionId: 't1', amountMinor: 125 },
      cancellation: null,
    });
  });

  it('says when it is cancelled whether it had been paid', () => {
    expect(decide(cancel, states.PAID)).toMatchObject({ events: [{ payload: { wasPaid: true } }] });
    expect(decide(cancel, states.CREATED)).toMatchObject({ events: [{ payload: { wasPaid: false } }] });
  });

  it('counts its events in its version and ends for ever in COMPLETED or CANCELLED, whatever the commands', () => {
    const command = fc.oneof(
      fc.constant(create),
      fc.record({
        kind: fc.constant('pay' as const),
        transactionId: fc.constantFrom('t1', 't2'),
        amountMinor: fc.constantFrom(null, 125, 1),
      }),
      fc.constant(cancel),
      fc.constant(complete),
    );
    fc.assert(
      fc.property(fc.array(command, { maxLength: 12 }), (commands) => {
        let state: Order | null = null;
        let events = 0;
        for (const next of commands) {
          const decision = decide(next, state);
          const final = state !== null && (state.status === 'COMPLETED' || state.status === 'CANCELLED');
          if (decision.kind === 'events') events += decision.events.length;
          if (final) expect(decision.kind).not.toBe('events');
          state = apply(state, decision);
          expect(state?.version ?? 0).toBe(events);
          if (state !== null) expect(state.totalMinor).toBe(totalOf(lines));
        }
      }),
    );
  });
});

function nameOf(decision: Decision): string {
  if (decision.kind === 'events') return decision.events[0].eventType;
  return decision.kind === 'rejected' ? decision.rejection.reason : decision.kind;
}
