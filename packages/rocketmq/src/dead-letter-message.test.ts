import { encodeEnvelope, type EventEnvelope } from '@nightporter/contracts';
import type { DeadLetterCopy } from '@nightporter/consumer';
import { aggregateKey, aggregateVersion, eventId } from '@nightporter/protocol';
import { expect, it } from 'vitest';
import { deadLetterMessage } from './dead-letter-message.js';

const envelope: EventEnvelope = {
  eventId: eventId('e1'),
  source: 'orders',
  eventType: 'OrderPaid',
  eventVersion: 2,
  aggregateType: 'order',
  aggregateId: '7',
  aggregateVersion: aggregateVersion(3),
  occurredAt: '2026-01-02T03:04:05.678Z',
  data: { text: 'é ✓' },
};

const copy: DeadLetterCopy = {
  id: 'c1',
  group: 'points@2',
  event: {
    envelope,
    aggregate: aggregateKey(envelope),
    topic: 'orders-events',
    form: 'original',
    digest: 'd1',
    messageId: 'm1',
  },
  attempts: 5,
  failure: { code: 'NP_HANDLER_FAILED', message: 'no such\naccount\t7', stack: 'at …' },
  diedAtMs: Date.parse('2026-02-03T04:05:06.789Z'),
};

it('A copy has the body of its message, and its death beside it', () => {
  const message = deadLetterMessage(copy, 'orders-events-dlt');
  expect(message).toMatchObject({ topic: 'orders-events-dlt', tag: 'OrderPaid', keys: ['e1', copy.event.aggregate] });
  expect(message.body).toEqual(encodeEnvelope(envelope));
  expect(Object.fromEntries(message.properties)).toEqual({
    'np-form': 'original',
    'np-digest': 'd1',
    'np-source': 'orders',
    'np-event-version': '2',
    'np-dead-group': 'points@2',
    'np-dead-code': 'NP_HANDLER_FAILED',
    'np-dead-reason': 'no such account 7',
    'np-dead-attempts': '5',
    'np-dead-at': '2026-02-03T04:05:06.789Z',
    'np-dead-topic': 'orders-events',
    'np-dead-message-id': 'm1',
  });
});

it('A reason that the broker would not take is cut, and its control characters and half characters are blanks', () => {
  const failure = { code: 'NP_HANDLER_FAILED', message: `\u0000\ud800x${'y'.repeat(20_000)}`, stack: null };
  const reason = deadLetterMessage({ ...copy, failure }, 't').properties.get('np-dead-reason');
  expect(reason).toMatch(/^ xy+$/);
  expect(reason?.length).toBeLessThanOrEqual(1_000);
});

it('What is empty is left out, as the broker takes no empty value', () => {
  const { properties } = deadLetterMessage({ ...copy, failure: null, event: { ...copy.event, digest: '' } }, 't');
  expect(['np-dead-code', 'np-dead-reason', 'np-digest'].filter((name) => properties.has(name))).toEqual([]);
});
