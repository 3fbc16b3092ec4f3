import { createHash } from 'node:crypto';
import { NightporterError, aggregateKey, type AggregateIdentity } from '@nightporter/protocol';
import { AGGREGATE_ID_LENGTH_MAX, EVENT_KEY_BYTES_MAX, NAME_LENGTH_MAX } from './limits.js';
import { hasControlCharacter, hasLoneSurrogate, shown, utf8Bytes } from './text.js';

const NAME = /^[A-Za-z][A-Za-z0-9._-]*$/;
const TOPIC = /^[A-Za-z0-9_-]{1,127}$/;

/** Sources, aggregate types and event types: they become tags and parts of keys as they are. */
export function isName(value: string): boolean {
  return value.length <= NAME_LENGTH_MAX && NAME.test(value);
}

export function isTopic(value: string): boolean {
  return TOPIC.test(value);
}

/** Any text of 1 to {@link AGGREGATE_ID_LENGTH_MAX} UTF-16 code units without control characters and lone surrogates. */
export function isAggregateId(value: string): boolean {
  return (
    value.length >= 1 &&
    value.length <= AGGREGATE_ID_LENGTH_MAX &&
    !hasControlCharacter(value) &&
    !hasLoneSurrogate(value)
  );
}

/** @throws NP_EVENT_INVALID for an identity that cannot be keyed, grouped and traced. */
export function assertIdentity({ source, aggregateType, aggregateId }: AggregateIdentity): void {
  const name = `1 to ${NAME_LENGTH_MAX} characters, a letter first, then letters, digits, dot, underscore, hyphen`;
  if (!isName(source)) throw invalid(`source is ${shown(source)}; accepted: ${name}.`);
  if (!isName(aggregateType)) throw invalid(`aggregateType is ${shown(aggregateType)}; accepted: ${name}.`);
  if (typeof aggregateId !== 'string' || !isAggregateId(aggregateId)) {
    throw invalid(
      `aggregateId is ${shown(aggregateId)}; accepted: 1 to ${AGGREGATE_ID_LENGTH_MAX} characters without control characters and lone surrogates.`,
    );
  }
}

/** @throws NP_EVENT_INVALID for an event key that the broker would not take as a message group. */
export function assertEventKey(value: string): void {
  const fits = value.trim() !== '' && utf8Bytes(value) <= EVENT_KEY_BYTES_MAX;
  if (fits && !hasControlCharacter(value) && !hasLoneSurrogate(value)) return;
  throw invalid(
    `eventKey is ${shown(value)}; accepted: 1 to ${EVENT_KEY_BYTES_MAX} bytes of UTF-8, not blank, without control characters and lone surrogates.`,
  );
}

/**
 * The message group of an aggregate that was given none: its key, or a hash of it where the key is longer than the broker takes. The
 * two forms cannot meet, for an aggregate key holds `/` and never `:`.
 */
export function defaultEventKey(identity: AggregateIdentity): string {
  const key = aggregateKey(identity);
  return utf8Bytes(key) <= EVENT_KEY_BYTES_MAX ? key : `sha256:${createHash('sha256').update(key).digest('base64url')}`;
}

function invalid(message: string): NightporterError {
  return new NightporterError('NP_EVENT_INVALID', message);
}
