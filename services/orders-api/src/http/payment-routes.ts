import { problemAnswers, sendProblem } from '@nightporter/http';
import type { FastifyPluginCallbackZod } from 'fastify-type-provider-zod';
import { NightporterError } from '@nightporter/protocol';
import type { Orders } from '../orders.js';
import { outcomeProblem, eventHeaders } from './exchange.js';

import * as schemas from './schemas.js';

/**
 * What a payment provider calls. It has the money already, so a payment that the order does not call for is not refused but taken down
 * as owed back. The provider's number makes a repeat harmless: the same callback gets the same answer, whenever it comes.
 */
export const paymentRoutes: FastifyPluginCallbackZod<{ orders: Orders }> = (app, { orders }, done) => {
  const callbackSchema = {
    tags: ['payments'],
    summary: "Takes the payment provider's callback",
    body: schemas.paymentCallbackBody,
    response: { 200: schemas.paymentAnswer, ...problemAnswers },
  };
  app.post('/payments/callback', { schema: callbackSchema }, async (request, reply) => {
    const { orderId, paymentTransactionNo, amountMinor, currency } = request.body;
    const result = await orders.execute({
      orderId,
      command: { kind: 'receive-payment', transactionId: paymentTransactionNo, amountMinor, currency },
      expected: { kind: 'any' },
      idempotency: null,
      headers: eventHeaders(request),
    });
    if (result.kind === 'key-reused') throw new NightporterError('NP_INTERNAL', 'a callback has no idempotency key');
    if (result.outcome.kind !== 'accepted') return sendProblem(reply, outcomeProblem(orderId, result.outcome));
    // Written once and never changed, so that a repeat is answered alike.
    const payment = await orders.findPayment(paymentTransactionNo);
    if (payment === null)
      throw new NightporterError('NP_INTERNAL', `payment ${paymentTransactionNo} was taken and is not there`);
    const { outcome } = payment;
    return { paymentTransactionNo, orderId, amountMinor, currency, outcome };
  });
  done();
};
