import type { Delivery, IncomingEvent, Subscriber } from '@nightporter/consumer';
import { encodeEnvelope, MESSAGE_PROPERTIES } from '@nightporter/contracts';

let deliveries = 0;

/** An event as a broker would hand it out for the first time. */
export function deliveryOf({ envelope, digest, form, topic }: IncomingEvent): Delivery {
  deliveries += 1;
  return {
    messageId: `m${deliveries}`,
    topic,
    body: encodeEnvelope(envelope),
    properties: { [MESSAGE_PROPERTIES.form]: form, [MESSAGE_PROPERTIES.digest]: digest },
    deliveryAttempt: 1,
    receipt: deliveries,
  };
}

/** Hands out these batches, one for each receive, where a test must know exactly what comes together. */
export function handingOut(
  batches: (readonly Delivery[])[],
  acknowledged: (deliveries: readonly Delivery[]) => void = () => undefined,
): Subscriber {
  return {
    receive: () => Promise.resolve(batches.shift() ?? []),
    acknowledge: (settled) => {
      acknowledged(settled);
      return Promise.resolve();
    },
    extend: (held) => Promise.resolve(held),
  };
}
