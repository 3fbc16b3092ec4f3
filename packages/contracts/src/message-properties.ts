/** Names of the string properties of a message, beside its body. They repeat what routing, tracing and checks need. */
export const MESSAGE_PROPERTIES = {
  /** `original` or `tombstone`. */
  form: 'np-form',
  /** Digest of the envelope in the body, see `digestOf`. */
  digest: 'np-digest',
  /** W3C trace context of the event; absent where the event has none. */
  traceparent: 'traceparent',
  /** Lease epoch of the relay that sent the message. */
  relayEpoch: 'np-relay-epoch',
  source: 'np-source',
  eventVersion: 'np-event-version',
} as const;

export type MessageProperty = (typeof MESSAGE_PROPERTIES)[keyof typeof MESSAGE_PROPERTIES];
