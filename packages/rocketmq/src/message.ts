import { createHash } from 'node:crypto';
import { MESSAGE_PROPERTIES, digestOf, encodeEnvelope, envelopeOf } from '@nightporter/contracts';
import { aggregateKey, isTraceparent } from '@nightporter/protocol';
import type { PublishRequest } from '@nightporter/relay';

/** A message as it goes to the broker. */
export interface OutgoingMessage {
  readonly topic: string;
  readonly body: Uint8Array;
  /** eventId and aggregate key: what a message can be looked up by. */
  readonly keys: readonly [string, string];
  readonly tag: string;
  readonly messageGroup: string;
  readonly properties: ReadonlyMap<string, string>;
}

export type MessageVerdict =
  | { readonly kind: 'message'; readonly message: OutgoingMessage }
  /** This event can never be sent. */
  | { readonly kind: 'illegal-message'; readonly reason: string }
  /** Nothing of this topic can be sent. */
  | { readonly kind: 'illegal-topic'; readonly reason: string };

/** Limits of the broker and its proxy, as delivered. */
export const BODY_BYTES_MAX = 4 * 1024 * 1024;
const PROPERTIES_BYTES_MAX = 16 * 1024;
const TOPIC_LENGTH_MAX = 127;
export const MESSAGE_GROUP_BYTES_MAX = 63;

const TOPIC = /^[%|a-zA-Z0-9_-]+$/;
/** Java's ISO control characters, which the proxy refuses in keys, tags, groups and properties. */
const CONTROL_CHARACTER = /\p{Cc}/u;

/** The message of an outbox row, checked against the broker's limits, so that what it would refuse is told with its reason here. */
export function messageOf(request: PublishRequest): MessageVerdict {
  const { topic } = request.row as { readonly topic: unknown };
  // A document that somebody wrote past `emit()` may lack anything: that is the event's fault, and says nothing about a topic.
  if (typeof topic !== 'string')
    return { kind: 'illegal-message', reason: `topic is ${String(topic)}; accepted: a text.` };
  if (!TOPIC.test(topic) || topic.length > TOPIC_LENGTH_MAX) {
    return {
      kind: 'illegal-topic',
      reason: `topic is ${JSON.stringify(topic)}; accepted: 1 to ${TOPIC_LENGTH_MAX} of letters, digits, '_', '-', '%' and '|'.`,
    };
  }
  try {
    const message = build(request);
    const reason = complaint(message);
    return reason === null ? { kind: 'message', message } : { kind: 'illegal-message', reason };
  } catch (error) {
    return { kind: 'illegal-message', reason: `the event cannot be encoded: ${String(error)}` };
  }
}

/**
 * The message group of an event key: the key itself, or its hash where the broker would not take it. Event keys are made to fit when
 * they are written; a row written by something else must still keep its order.
 */
export function messageGroupOf(eventKey: string): string {
  const fits = utf8Bytes(eventKey) <= MESSAGE_GROUP_BYTES_MAX && eventKey.trim() !== '';
  if (fits && !CONTROL_CHARACTER.test(eventKey)) return eventKey;
  return `sha256:${createHash('sha256').update(eventKey).digest('base64url')}`;
}

function build({ row, epoch, traceparent: sending }: PublishRequest): OutgoingMessage {
  const envelope = envelopeOf(row, row.form);
  const properties = new Map<string, string>([
    [MESSAGE_PROPERTIES.form, row.form],
    // The digest of an original was made when it was written, and travels as it is: a body altered since is found out.
    [MESSAGE_PROPERTIES.digest, row.form === 'original' ? row.digest : digestOf(envelope)],
    [MESSAGE_PROPERTIES.relayEpoch, String(epoch)],
    [MESSAGE_PROPERTIES.source, row.source],
    [MESSAGE_PROPERTIES.eventVersion, String(row.eventVersion)],
  ]);
  if (row.createdAtMs !== undefined) properties.set(MESSAGE_PROPERTIES.createdAt, String(row.createdAtMs));
  const traceparent = sending ?? envelope.traceparent;
  // A malformed trace context is no reason to hold an event back; the envelope still has it.
  if (isTraceparent(traceparent)) properties.set(MESSAGE_PROPERTIES.traceparent, traceparent);
  return {
    topic: row.topic,
    body: encodeEnvelope(envelope),
    keys: [row.eventId, aggregateKey(row)],
    tag: row.eventType,
    messageGroup: messageGroupOf(row.eventKey),
    properties,
  };
}

function complaint({ body, keys, tag, properties }: OutgoingMessage): string | null {
  if (body.byteLength > BODY_BYTES_MAX) {
    return `the encoded envelope has ${body.byteLength} bytes; accepted: up to ${BODY_BYTES_MAX}.`;
  }
  if (tag.trim() === '' || tag.includes('|') || CONTROL_CHARACTER.test(tag)) {
    return `eventType is ${JSON.stringify(tag)}; accepted as a tag: not blank, no '|', no control characters.`;
  }
  for (const key of keys) {
    // Keys are joined by spaces on the way: one with a space would be split in two.
    if (key === '' || /\s/.test(key) || CONTROL_CHARACTER.test(key)) {
      return `a message key is ${JSON.stringify(key)}; accepted: not empty, no white space, no control characters.`;
    }
  }
  for (const [name, value] of properties) {
    if (CONTROL_CHARACTER.test(value)) {
      return `the property ${name} is ${JSON.stringify(value)}; accepted: no control characters.`;
    }
  }
  const bytes = [tag, ...keys, ...[...properties].flat()].reduce((sum, text) => sum + utf8Bytes(text), 0);
  if (bytes > PROPERTIES_BYTES_MAX) {
    return `tag, keys and properties have ${bytes} bytes; accepted: up to ${PROPERTIES_BYTES_MAX}.`;
  }
  return null;
}

function utf8Bytes(text: string): number {
  return Buffer.byteLength(text, 'utf8');
}
