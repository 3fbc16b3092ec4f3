import type { SpanAttributes } from './tracing.js';

/**
 * Names of attributes, by OpenTelemetry's conventions for messaging. These are in development, and the names of some have changed: what
 * was `messaging.system` and `messaging.rocketmq.message.…` became `messaging.system.name` and `rocketmq.message.…`. Both go along, so that what
 * knows only the former finds it too. Decision 0010 has the reasons.
 */
const SYSTEM = 'rocketmq';

export interface MessagingOperation {
  /** `type` is missing where none of the convention's fits. */
  readonly name: string;
  readonly type?: 'send' | 'process';
  readonly topic: string | undefined;
  /** Of the consumer, where it is one. */
  readonly group?: string;
}

/** What is done with a message, and where. */
export function messagingAttributes({ name, type, topic, group }: MessagingOperation): SpanAttributes {
  return {
    'messaging.system': SYSTEM,
    'messaging.system.name': SYSTEM,
    'messaging.operation.name': name,
    'messaging.operation.type': type,
    'messaging.destination.name': topic,
    'messaging.consumer.group.name': group,
  };
}

/** What spans tell of an event. Its data is no part of it. */
export interface EventFacts {
  readonly eventId: string;
  readonly eventType: string;
  readonly eventVersion: number;
  /** Its key, as the log and the commands write it. */
  readonly aggregate: string;
  readonly aggregateVersion: number;
  readonly correlationId: string | undefined;
  /** At the broker; unknown before it has taken the message. */
  readonly messageId: string | undefined;
  readonly messageGroup: string | undefined;
}

export function eventAttributes(facts: EventFacts): SpanAttributes {
  const { messageGroup, messageId, eventType } = facts;
  return {
    'messaging.message.id': messageId,
    'messaging.message.conversation_id': facts.correlationId,
    'messaging.rocketmq.message.type': 'fifo',
    'rocketmq.message.type': 'fifo',
    'messaging.rocketmq.message.tag': eventType,
    'rocketmq.message.tag': eventType,
    'messaging.rocketmq.message.group': messageGroup,
    'rocketmq.message.group': messageGroup,
    'nightporter.event.id': facts.eventId,
    'nightporter.event.type': eventType,
    'nightporter.event.version': facts.eventVersion,
    'nightporter.aggregate': facts.aggregate,
    'nightporter.aggregate.version': facts.aggregateVersion,
  };
}
