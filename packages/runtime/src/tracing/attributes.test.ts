import * as conventions from '@opentelemetry/semantic-conventions';
import * as incubating from '@opentelemetry/semantic-conventions/incubating';
import { describe, expect, it } from 'vitest';
import { eventAttributes, messagingAttributes } from './attributes.js';

const known = new Set<unknown>([...Object.values(conventions), ...Object.values(incubating)]);
const facts = {
  eventId: 'e1',
  eventType: 'OrderCreated',
  eventVersion: 1,
  aggregate: 'orders/order/1',
  aggregateVersion: 3,
  correlationId: 'c1',
  messageId: 'm1',
  messageGroup: 'order/1',
};

describe('attributes of messaging spans', () => {
  const all = {
    ...messagingAttributes({ name: 'process', type: 'process', topic: 'orders-events', group: 'inventory' }),
    ...eventAttributes(facts),
  };

  it('are named by OpenTelemetry’s conventions, or are nightporter’s own', () => {
    const foreign = Object.keys(all).filter((name) => !known.has(name) && !name.startsWith('nightporter.'));
    expect(foreign).toEqual([]);
  });

  it('have the values that the conventions have for them', () => {
    expect(all).toMatchObject({
      'messaging.system': 'rocketmq',
      'messaging.system.name': incubating.MESSAGING_SYSTEM_NAME_VALUE_ROCKETMQ,
      'messaging.operation.type': incubating.MESSAGING_OPERATION_TYPE_VALUE_PROCESS,
      'messaging.destination.name': 'orders-events',
      'messaging.consumer.group.name': 'inventory',
      'rocketmq.message.type': incubating.ROCKETMQ_MESSAGE_TYPE_VALUE_FIFO,
      'rocketmq.message.group': 'order/1',
      'messaging.rocketmq.message.group': 'order/1',
      'nightporter.event.id': 'e1',
      'nightporter.aggregate': 'orders/order/1',
      'nightporter.aggregate.version': 3,
    });
  });
});
