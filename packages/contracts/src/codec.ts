import type { EventId } from '@nightporter/protocol';
import { z } from 'zod';
import type { EventEnvelope } from './envelope.js';
import { PAYLOAD_DEPTH_MAX } from './limits.js';

export type Decoded =
  | { readonly kind: 'envelope'; readonly envelope: EventEnvelope }
  | { readonly kind: 'unreadable'; readonly reason: string };

/** The body of a message: the envelope as UTF-8 JSON. */
export function encodeEnvelope(envelope: EventEnvelope): Uint8Array {
  return Buffer.from(JSON.stringify(envelope), 'utf8');
}

const text = z.string().min(1);

/**
 * The shape of an envelope. `data` is not looked at, for its schema is the catalogue's, and fields of a later version stay, for
 * the digest counts them.
 */
const envelopeShape = z.looseObject({
  eventId: text,
  source: text,
  eventType: text,
  eventVersion: z.int().min(1),
  aggregateType: text,
  aggregateId: text,
  aggregateVersion: z.int().min(1),
  occurredAt: z.iso.datetime(),
  traceparent: text.optional(),
  tracestate: text.optional(),
  tenantId: text.optional(),
  correlationId: text.optional(),
  causationId: text.optional(),
});

/**
 * Reads the body of a message. `unreadable` is whatever cannot be sequenced: not UTF-8, not JSON, no identity, or nested deeper
 * than the database could keep. Whether `data` is what was written is told by the digest and the catalogue, not here.
 */
export function decodeEnvelope(bytes: Uint8Array): Decoded {
  if (bytes.length === 0) return unreadable('the body is empty');
  const parsed = parse(bytes);
  if (parsed.kind === 'unreadable') return parsed;
  const { value } = parsed;
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    return unreadable('the body is JSON, but not an object');
  }
  const shape = envelopeShape.safeParse(value);
  if (!shape.success) return unreadable(shape.error.issues.map(describe).join('; '));
  if (!('data' in value)) return unreadable('data: is missing');
  if (isDeeperThan(value.data, PAYLOAD_DEPTH_MAX)) {
    return unreadable(`data: is nested deeper than ${PAYLOAD_DEPTH_MAX} levels`);
  }
  // Fields of a later version too: what is nested too deep cannot be written down, and so not even be parked.
  if (isDeeperThan(value, PAYLOAD_DEPTH_MAX + 1)) {
    return unreadable(`a field beside data is nested deeper than ${PAYLOAD_DEPTH_MAX} levels`);
  }
  // The parsed value itself, not zod's copy of it: nothing may be lost between the body and the digest.
  return { kind: 'envelope', envelope: value as unknown as EventEnvelope & { eventId: EventId } };
}

function parse(
  bytes: Uint8Array,
): { readonly kind: 'parsed'; readonly value: unknown } | Extract<Decoded, { kind: 'unreadable' }> {
  let body: string;
  try {
    // `ignoreBOM` keeps a byte order mark in the text, where JSON refuses it.
    body = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return unreadable('the body is not UTF-8');
  }
  try {
    return { kind: 'parsed', value: JSON.parse(body) };
  } catch (error) {
    return unreadable(`the body is not JSON: ${error instanceof Error ? error.message : String(error)}`);
  }
}

function describe(issue: z.core.$ZodIssue): string {
  return `${issue.path.map(String).join('.')}: ${issue.message}`;
}

function isDeeperThan(value: unknown, levels: number): boolean {
  let layer = [value];
  for (let level = 0; layer.length > 0; level += 1) {
    const containers = layer.filter((inner) => typeof inner === 'object' && inner !== null);
    if (containers.length > 0 && level >= levels) return true;
    layer = containers.flatMap((container): unknown[] => Object.values(container));
  }
  return false;
}

function unreadable(reason: string): Extract<Decoded, { kind: 'unreadable' }> {
  return { kind: 'unreadable', reason };
}
