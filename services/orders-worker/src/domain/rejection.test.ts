import type { Rejection } from '@nightporter/orders-api';
import { describe, expect, it } from 'vitest';
import { cannotBeCarriedOn, wasDecidedBefore } from './rejection.js';

describe('a command that an order refuses', () => {
  it.each<[string, Rejection, boolean]>([
    ['a cancelled order is not completed', { reason: 'transition', command: 'complete', status: 'CANCELLED' }, true],
    ['a cancelled order is not cancelled', { reason: 'transition', command: 'cancel', status: 'CANCELLED' }, true],
    ['a completed order is not completed', { reason: 'transition', command: 'complete', status: 'COMPLETED' }, true],
    [
      'an order is completed that was never shipped',
      { reason: 'transition', command: 'cancel', status: 'COMPLETED' },
      false,
    ],
    ['an order that nobody paid is delivered', { reason: 'transition', command: 'complete', status: 'CREATED' }, false],
    ['the order is unknown', { reason: 'order-unknown' }, false],
  ])('has nothing left to do only where the customer was faster: %s', (_name, rejection, isDecided) => {
    expect(wasDecidedBefore(rejection)).toBe(isDecided);
  });

  it('is named with its order and the reason', () => {
    expect(cannotBeCarriedOn('o1', { reason: 'transition', command: 'complete', status: 'CREATED' }).message).toBe(
      'Order o1 refuses what the event asks for: transition {"command":"complete","status":"CREATED"}.',
    );
  });
});
