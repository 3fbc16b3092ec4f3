/** Names of the string properties of a message, beside its body. They repeat what routing, tracing and checks need. */
export const MESSAGE_PROPERTIES = {
  /** `original` or `tombstone`. */
  form: 'np-form',
  /** Digest of the envelope in the body, see `digestOf`. */
  digest: 'np-digest',
  /** W3C trace context of the send where it is traced, else of the event; absent where neither has one. */
  traceparent: 'traceparent',
  /** Lease epoch of the relay that sent the message. */
  relayEpoch: 'np-relay-epoch',
  source: 'np-source',
  eventVersion: 'np-event-version',
  /** When the event was written, in milliseconds since 1970 on the producer's database clock; absent where that is not known. */
  createdAt: 'np-created-at',
} as const;

/** Names of the properties that a copy of a dead letter has beside those of its message. */
export const DEAD_LETTER_PROPERTIES = {
  /** The group in which it is a dead letter. */
  group: 'np-dead-group',
  /** Why: an error code, and a message. */
  code: 'np-dead-code',
  reason: 'np-dead-reason',
  attempts: 'np-dead-attempts',
  /** When it died, ISO 8601, on the clock of the group's database. */
  at: 'np-dead-at',
  /** Where the message came from, and its id there. */
  topic: 'np-dead-topic',
  messageId: 'np-dead-message-id',
} as const;

export type MessageProperty = (typeof MESSAGE_PROPERTIES)[keyof typeof MESSAGE_PROPERTIES];
