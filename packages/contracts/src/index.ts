export { canonicalJson } from './canonical-json.js';
export { createCatalogue, type Catalogue } from './catalogue.js';
export { breakingChanges, describeBreakingChange, type BreakingChange } from './compatibility.js';
export { decodeEnvelope, encodeEnvelope, type Decoded } from './codec.js';
export { digestOf } from './digest.js';
export { envelopeOf, type EnvelopeSource } from './envelope-of.js';
export {
  defineEvent,
  type DeepReadonly,
  type EventData,
  type EventDefinition,
  type EventTypeOf,
  type NewestData,
} from './event-definition.js';
export type { EventEnvelope, EventHeaders, JsonObject, JsonValue, PublicationForm } from './envelope.js';
export { inTrace } from './in-trace.js';
export {
  AGGREGATE_ID_LENGTH_MAX,
  ENVELOPE_BYTES_CEILING,
  ENVELOPE_BYTES_MAX_DEFAULT,
  EVENT_KEY_BYTES_MAX,
  NAME_LENGTH_MAX,
  PAYLOAD_DEPTH_MAX,
} from './limits.js';
export { DEAD_LETTER_PROPERTIES, MESSAGE_PROPERTIES, type MessageProperty } from './message-properties.js';
export { assertEventKey, assertIdentity, defaultEventKey, isAggregateId, isName, isTopic } from './names.js';
export * from './orders-catalogue.js';
export type {
  OutboxDocument,
  OutboxHeadDocument,
  OutboxRow,
  OutboxStatus,
  PublicationRecord,
  SkipRequest,
} from './outbox-row.js';
export { assertPayload } from './payload.js';
export type { ReadVerdict } from './read.js';
export {
  parseReleased,
  releasedCatalogue,
  type JsonSchema,
  type ReleasedCatalogue,
  type ReleasedEvent,
} from './released.js';
export { hasControlCharacter, hasLoneSurrogate, shown } from './text.js';
