import { createCatalogue, defineEvent } from '@nightporter/contracts';
import { z } from 'zod';

/** What happens to a customer's account in the examples. */
export function catalogueOn(topic: string) {
  const account = { aggregateType: 'account', topic, version: 1 } as const;
  return createCatalogue([
    defineEvent({
      ...account,
      type: 'MoneyReceived',
      schema: z.strictObject({ transactionId: z.string(), amountMinor: z.int() }),
    }),
    defineEvent({ ...account, type: 'CardOrdered', schema: z.strictObject({}) }),
    defineEvent({ ...account, type: 'CardSent', schema: z.strictObject({}) }),
    defineEvent({ ...account, type: 'ContactChanged', schema: z.strictObject({ email: z.string() }) }),
  ]);
}

export type Events = ReturnType<typeof catalogueOn>['events'];
