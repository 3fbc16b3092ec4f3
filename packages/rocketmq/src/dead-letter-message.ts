import { DEAD_LETTER_PROPERTIES, MESSAGE_PROPERTIES, encodeEnvelope } from '@nightporter/contracts';
import type { DeadLetterCopy } from '@nightporter/consumer';
import { messageGroupOf, type OutgoingMessage } from './message.js';

/** So that all properties together stay below the broker's limit. */
const REASON_LENGTH_MAX = 1_000;
/** Java's ISO control characters, which the proxy refuses, and halves of characters, which have no bytes. */
const CONTROL_CHARACTERS = /[\p{Cc}\p{Cs}]+/gu;

/** The message as it came, body and all, in the order of its aggregate, with what is to be known of its death beside it. */
export function deadLetterMessage(copy: DeadLetterCopy, topic: string): OutgoingMessage {
  const { attempts, diedAtMs, event, failure, group } = copy;
  const { aggregate, digest, envelope, form, messageId } = event;
  const properties = {
    [MESSAGE_PROPERTIES.form]: form,
    [MESSAGE_PROPERTIES.digest]: digest,
    [MESSAGE_PROPERTIES.source]: envelope.source,
    [MESSAGE_PROPERTIES.eventVersion]: String(envelope.eventVersion),
    [DEAD_LETTER_PROPERTIES.group]: group,
    [DEAD_LETTER_PROPERTIES.code]: failure?.code ?? '',
    [DEAD_LETTER_PROPERTIES.reason]: (failure?.message ?? '').slice(0, REASON_LENGTH_MAX),
    [DEAD_LETTER_PROPERTIES.attempts]: String(attempts),
    [DEAD_LETTER_PROPERTIES.at]: new Date(diedAtMs).toISOString(),
    [DEAD_LETTER_PROPERTIES.topic]: event.topic,
    [DEAD_LETTER_PROPERTIES.messageId]: messageId,
  };
  // The broker takes no empty value.
  const given = Object.entries(properties)
    .map(([name, value]) => [name, value.replace(CONTROL_CHARACTERS, ' ')] as const)
    .filter(([, value]) => value.trim() !== '');
  return {
    topic,
    body: encodeEnvelope(envelope),
    keys: [envelope.eventId, aggregate],
    tag: envelope.eventType,
    messageGroup: messageGroupOf(aggregate),
    properties: new Map(given),
  };
}
