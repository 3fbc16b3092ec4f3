import {
  ENVELOPE_BYTES_CEILING,
  assertEventKey,
  assertIdentity,
  assertPayload,
  defaultEventKey,
  digestOf,
  encodeEnvelope,
  envelopeOf,
  shown,
  type Catalogue,
  type EventHeaders,
  type JsonValue,
  type OutboxDocument,
} from '@nightporter/contracts';
import {
  NightporterError,
  aggregateKey,
  aggregateVersion,
  slotOf,
  type AggregateKey,
  type EventId,
} from '@nightporter/protocol';
import { mergeHeaders } from './headers.js';
import type { HeadRequest } from './heads.js';
import type { EmitRequest } from './outbox.js';

/** What an outbox knows about every event that it writes. */
export interface DraftRules {
  readonly source: string;
  readonly catalogue: Catalogue;
  readonly envelopeBytesMax: number;
}

/** What the moment of an emit adds to the request. */
export interface DraftMoment {
  readonly eventId: EventId;
  readonly now: Date;
  /** Headers of events that bring none of their own. */
  readonly headers: EventHeaders;
  /** correlationId of the transaction's first event; null before it. */
  readonly story: string | null;
}

/** An event that has passed every check and lacks only its version. */
export interface Draft {
  readonly aggregate: AggregateKey;
  readonly head: HeadRequest;
  readonly correlationId: string;
  readonly fields: Omit<OutboxDocument, 'aggregateVersion' | 'eventKey' | 'slot' | 'digest'>;
}

/**
 * Checks a request and completes it, before anything is written. The payload is copied, so that what is checked, digested and
 * stored is one and the same, whatever the caller does with its object afterwards.
 *
 * @throws NP_EVENT_INVALID, NP_PAYLOAD_NOT_JSON, NP_EVENT_TOO_LARGE, NP_EVENT_UNKNOWN
 */
export function draftEvent(request: EmitRequest, rules: DraftRules, moment: DraftMoment): Draft {
  const { aggregateType, aggregateId, eventType, eventVersion, expectedVersion, eventKey } = request;
  const identity = { source: rules.source, aggregateType, aggregateId };
  assertIdentity(identity);
  if (eventKey !== undefined) assertEventKey(eventKey);
  if (expectedVersion !== undefined) assertExpectedVersion(expectedVersion);
  const payload = copyOf(request.payload);
  const definition = rules.catalogue.validate({ eventType, eventVersion, payload });
  if (definition.aggregateType !== aggregateType) {
    throw invalid(
      `${eventType} belongs to the aggregate type ${definition.aggregateType}, and was emitted for ${aggregateType}.`,
    );
  }
  const headers = mergeHeaders(request.headers ?? {}, moment.headers);
  const correlationId = headers.correlationId ?? moment.story ?? moment.eventId;
  const fields: Draft['fields'] = {
    _id: moment.eventId,
    ...identity,
    eventType,
    eventVersion: definition.version,
    topic: definition.topic,
    payload,
    occurredAt: checkedDate(request.occurredAt ?? moment.now),
    headers: { ...headers, correlationId },
    ...FRESH,
    createdAt: moment.now,
    updatedAt: moment.now,
  };
  assertSize(fields, rules.envelopeBytesMax);
  return {
    aggregate: aggregateKey(identity),
    head: { aggregate: aggregateKey(identity), expectedVersion, eventKey, defaultEventKey: defaultEventKey(identity) },
    correlationId,
    fields,
  };
}

/** The document that the outbox stores for a draft whose version has been assigned. */
export function documentOf(
  draft: Draft,
  head: { readonly version: number; readonly eventKey: string },
): OutboxDocument {
  const { eventKey } = head;
  const numbered = { ...draft.fields, aggregateVersion: aggregateVersion(head.version) };
  return { ...numbered, eventKey, slot: slotOf(eventKey), digest: digestOf(envelopeOf(numbered, 'original')) };
}

/** The state of every row at its beginning; see design "States". */
const FRESH = {
  status: 'PENDING',
  unsettled: true,
  retryCount: 0,
  nextRetryAt: null,
  lastError: null,
  publishedAt: null,
  revision: 1,
  publication: null,
  skip: null,
  unanswered: false,
} as const;

function copyOf(payload: unknown): JsonValue {
  assertPayload(payload);
  return JSON.parse(JSON.stringify(payload)) as JsonValue;
}

/** The size is taken with the longest version there can be, so that an event does not become too large by waiting its turn. */
function assertSize(fields: Draft['fields'], bytesMax: number): void {
  const longest = { ...fields, aggregateVersion: aggregateVersion(Number.MAX_SAFE_INTEGER) };
  const bytes = encodeEnvelope(envelopeOf(longest, 'original')).length;
  if (bytes <= bytesMax) return;
  throw new NightporterError(
    'NP_EVENT_TOO_LARGE',
    `The envelope of ${fields.eventType} takes ${bytes} bytes; accepted: ${bytesMax} (envelopeBytesMax, at most ${ENVELOPE_BYTES_CEILING}).`,
  );
}

function assertExpectedVersion(value: number): void {
  if (Number.isSafeInteger(value) && value >= 0) return;
  throw invalid(`expectedVersion is ${shown(value)}; accepted: 0 for a new aggregate, 1, 2, 3 …`);
}

/** RFC 3339 has four digits for the year. */
function checkedDate(date: Date): Date {
  const year = date instanceof Date ? date.getUTCFullYear() : Number.NaN;
  if (year >= 0 && year <= 9999) return new Date(date);
  throw invalid(`occurredAt is ${shown(date)}; accepted: a valid Date of the years 0 to 9999.`);
}

function invalid(message: string): NightporterError {
  return new NightporterError('NP_EVENT_INVALID', message);
}
