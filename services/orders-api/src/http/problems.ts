import { defineProblems, type Problem } from '@nightporter/http';
import type { Rejection } from '../domain/order.js';

/** Besides the common ones. */
export const problem = defineProblems({
  'order-unknown': { status: 404, title: 'There is no such order' },
  'order-exists': { status: 409, title: 'The order exists already' },
  'transition-refused': { status: 409, title: "The order's status does not allow this" },
  'amount-mismatch': { status: 409, title: 'The amount paid is not the total of the order' },
  'paid-otherwise': { status: 409, title: 'The order is paid by another transaction' },
  'payment-known': { status: 409, title: 'The transaction number belongs to another payment' },
  'precondition-failed': { status: 412, title: 'The order has changed' },
  'idempotency-key-reused': { status: 422, title: 'The idempotency key belongs to another request' },
});

export function rejectionProblem(orderId: string, rejection: Rejection): Problem {
  const order = `order ${JSON.stringify(orderId)}`;
  switch (rejection.reason) {
    case 'order-unknown':
      return problem('order-unknown', `${order} does not exist`);
    case 'order-exists':
      return problem('order-exists', `${order} exists already; orderId must be new`, [
        { pointer: '#/orderId', detail: 'is taken' },
      ]);
    case 'transition':
      return problem('transition-refused', `${order} is ${rejection.status}: it cannot ${VERBS[rejection.command]}`);
    case 'amount-mismatch':
      return problem(
        'amount-mismatch',
        `${order} costs ${rejection.expectedMinor} minor units, not ${rejection.givenMinor}`,
        [{ pointer: '#/amountMinor', detail: `must be ${rejection.expectedMinor}, or left out` }],
      );
    case 'paid-otherwise':
      return problem('paid-otherwise', `${order} is paid by transaction ${JSON.stringify(rejection.transactionId)}`, [
        { pointer: '#/transactionId', detail: 'is another transaction' },
      ]);
    case 'payment-known':
      return problem(
        'payment-known',
        `transaction ${JSON.stringify(rejection.transactionId)} stands for a payment that has come before: with another order, amount or currency, or one that is owed back`,
      );
  }
}

const VERBS = {
  create: 'be created',
  pay: 'be paid',
  'receive-payment': 'take a payment',
  cancel: 'be cancelled',
  complete: 'be completed',
};
