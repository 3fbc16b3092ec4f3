/** Limits of what an event may be. All of them are part of the contract between services. */

/**
 * How deep a payload may nest: `{}` is 1, `{ a: [] }` is 2. MongoDB carries 100 levels for clients (180 in the server), an outbox
 * document and a parked message add a few around the payload, and 64 leaves room for both.
 */
export const PAYLOAD_DEPTH_MAX = 64;

/** Largest encoded envelope that is accepted unless configured otherwise: 1 MiB. */
export const ENVELOPE_BYTES_MAX_DEFAULT = 1024 * 1024;

/** No configuration can raise the limit above this: the broker takes 4 MiB, of which 64 KiB stay for properties. */
export const ENVELOPE_BYTES_CEILING = 4 * 1024 * 1024 - 64 * 1024;

/** RocketMQ's limit for a message group, in bytes of UTF-8. */
export const EVENT_KEY_BYTES_MAX = 63;

/** Longest aggregateId, in UTF-16 code units. */
export const AGGREGATE_ID_LENGTH_MAX = 256;

/** Longest source, aggregate type and event type. */
export const NAME_LENGTH_MAX = 100;
