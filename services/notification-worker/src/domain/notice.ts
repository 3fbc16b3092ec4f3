/** What customers are told, decided without I/O, and from the event alone: the same event gives the same notice, whenever it is read. */
import type { EventOf } from '@nightporter/worker';
import type { ordersCatalogue } from '@nightporter/contracts';
import { createHash } from 'node:crypto';

type Events = typeof ordersCatalogue.events;

export const CHANNELS = ['log', 'webhook', 'smtp'] as const;
export type Channel = (typeof CHANNELS)[number];

/** The types of the events that customers hear of. */
export const TOLD_TYPES = [
  'OrderCreated',
  'OrderPaid',
  'OrderCancelled',
  'OrderCompleted',
  'SurplusPaymentReceived',
] as const;

/** The events that customers hear of. */
export type ToldEvent = {
  readonly [Type in (typeof TOLD_TYPES)[number]]: EventOf<Events, Type>;
};

export interface Notice {
  readonly recipient: string;
  readonly orderId: string;
  readonly eventId: string;
  readonly eventType: keyof ToldEvent;
  /** ISO 8601, as the event has it. */
  readonly occurredAt: string;
  readonly subject: string;
  readonly text: string;
}

export function noticeOf(event: ToldEvent[keyof ToldEvent], recipient: string): Notice {
  const { aggregateId: orderId, eventId, eventType, occurredAt } = event;
  return { recipient, orderId, eventId, eventType, occurredAt, ...wording(event) };
}

/**
 * One notification is one event, channel and recipient. Begins with the event's id, which begins with its time: sorted by it, the
 * older ones come first. Letters, digits and hyphens, so that it can stand in any header.
 */
export function idempotencyKey(part: { eventId: string; channel: Channel; recipient: string }): string {
  const recipient = createHash('sha256').update(part.recipient).digest('hex').slice(0, 16);
  return `${part.eventId}-${part.channel}-${recipient}`;
}

function wording(event: ToldEvent[keyof ToldEvent]): Pick<Notice, 'subject' | 'text'> {
  const order = `order ${event.aggregateId}`;
  switch (event.eventType) {
    case 'OrderCreated': {
      const { currency, totalMinor } = event.data;
      return { subject: `We have your ${order}`, text: `Thank you. It comes to ${money(totalMinor, currency)}.` };
    }
    case 'OrderPaid': {
      const { amountMinor, currency } = event.data;
      return { subject: `Your ${order} is paid`, text: `We have received ${money(amountMinor, currency)}.` };
    }
    case 'OrderCancelled': {
      const back = event.data.wasPaid ? ' You get back what you paid.' : '';
      return { subject: `Your ${order} is cancelled`, text: `The reason: ${event.data.reason}.${back}` };
    }
    case 'OrderCompleted':
      return { subject: `Your ${order} has been delivered`, text: 'We hope that you like it.' };
    case 'SurplusPaymentReceived': {
      const { amountMinor, currency } = event.data;
      const text = `We have received ${money(amountMinor, currency)} that it did not call for. You get it back.`;
      return { subject: `A payment for your ${order}`, text };
    }
  }
}

/** In minor units, exactly: how many of them a unit has depends on the currency. */
function money(amountMinor: number, currency: string): string {
  return `${currency} ${amountMinor} (minor units)`;
}
