import { createHash } from 'node:crypto';
import { canonicalJson } from './canonical-json.js';
import type { EventEnvelope, JsonValue } from './envelope.js';

/** Tracing may be renewed on the way and is no part of what was promised. */
const UNPROMISED = new Set(['traceparent', 'tracestate']);

/**
 * SHA-256, in hex, over the canonical envelope without its tracing headers. Every other field counts, those that a later version
 * of the envelope may add too. A field that is undefined counts as absent, which it is once encoded.
 */
export function digestOf(envelope: EventEnvelope): string {
  const fields = Object.entries(envelope).filter(([name, value]) => value !== undefined && !UNPROMISED.has(name));
  const promised = Object.fromEntries<JsonValue>(fields);
  return createHash('sha256').update(canonicalJson(promised)).digest('hex');
}
