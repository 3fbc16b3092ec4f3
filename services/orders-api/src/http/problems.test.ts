import { expect, it } from 'vitest';
import { rejectionProblem } from './problems.js';

it('A number that is refused may also be that of a payment which is owed back, and the answer does not rule that out', () => {
  const { detail } = rejectionProblem('o-1', { reason: 'payment-known', transactionId: 't-1' });
  expect(detail).toBe(
    'transaction "t-1" stands for a payment that has come before: with another order, amount or currency, or one that is owed back',
  );
});
