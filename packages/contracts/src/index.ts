export type { EventEnvelope, EventHeaders, JsonObject, JsonValue, PublicationForm } from './envelope.js';
export type {
  OutboxDocument,
  OutboxHeadDocument,
  OutboxRow,
  OutboxStatus,
  PublicationRecord,
  SkipRequest,
} from './outbox-row.js';
