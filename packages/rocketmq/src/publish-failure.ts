import type { PublishFailure } from '@nightporter/relay';

export interface FailureVerdict {
  readonly failure: PublishFailure;
  /** False when the broker may have stored the message all the same. */
  readonly answered: boolean;
}

const PERMANENT = { failure: 'permanent', answered: true } as const;
const TOPIC = { failure: 'topic', answered: true } as const;
/** Refused, and surely not stored. */
const REFUSED = { failure: 'transient', answered: true } as const;
const UNKNOWN = { failure: 'transient', answered: false } as const;

/** Status codes of RocketMQ's gRPC protocol (definition.proto), as far as they say more than "try again". */
const BROKER_CODES: Readonly<Record<number, FailureVerdict>> = {
  40000: PERMANENT, // BAD_REQUEST
  40002: TOPIC, // ILLEGAL_TOPIC
  40004: PERMANENT, // ILLEGAL_MESSAGE_TAG
  40005: PERMANENT, // ILLEGAL_MESSAGE_KEY
  40006: PERMANENT, // ILLEGAL_MESSAGE_GROUP
  40007: PERMANENT, // ILLEGAL_MESSAGE_PROPERTY_KEY
  40009: PERMANENT, // ILLEGAL_MESSAGE_ID
  40014: TOPIC, // MESSAGE_PROPERTY_CONFLICT_WITH_TYPE: every message of ours is FIFO, so the topic is not
  40016: PERMANENT, // MESSAGE_CORRUPTED
  40100: TOPIC, // UNAUTHORIZED
  40200: TOPIC, // PAYMENT_REQUIRED
  40300: TOPIC, // FORBIDDEN
  40400: TOPIC, // NOT_FOUND
  40402: TOPIC, // TOPIC_NOT_FOUND
  41300: PERMANENT, // PAYLOAD_TOO_LARGE
  41301: PERMANENT, // MESSAGE_BODY_TOO_LARGE
  41302: PERMANENT, // MESSAGE_BODY_EMPTY
  42900: REFUSED, // TOO_MANY_REQUESTS
  43100: PERMANENT, // REQUEST_HEADER_FIELDS_TOO_LARGE
  43101: PERMANENT, // MESSAGE_PROPERTIES_TOO_LARGE
};

/** Status codes of gRPC itself. */
const GRPC_PERMISSION_DENIED = 7;
const GRPC_UNIMPLEMENTED = 12;
const GRPC_UNAVAILABLE = 14;
const GRPC_UNAUTHENTICATED = 16;

/** Every status of RocketMQ is above, every status of gRPC below. */
const BROKER_CODES_FROM = 10_000;

/**
 * What a failed send says about its message. `INTERNAL_SERVER_ERROR` and the persistence time-outs (50401, 50402) count as
 * unanswered: the broker reports them for messages that it has stored, too.
 */
export function classifySendFailure(error: unknown): FailureVerdict {
  const { code, text } = describeError(error);
  // The broker's own limit on a message, where it lies below the proxy's, which passes the refusal on as INTERNAL_SERVER_ERROR.
  if (text.includes('the message is illegal')) return PERMANENT;
  if (code !== null && code >= BROKER_CODES_FROM) return BROKER_CODES[code] ?? UNKNOWN;
  if (code === GRPC_PERMISSION_DENIED || code === GRPC_UNAUTHENTICATED) return TOPIC;
  if (code === GRPC_UNIMPLEMENTED) return REFUSED;
  // gRPC's own words for a call that never left: nobody was there to take it.
  if (code === GRPC_UNAVAILABLE && text.includes('No connection established')) return REFUSED;
  // The client compares the message with the topic's types, and the body with the proxy's limit, before it sends anything.
  if (text.includes('message type not match')) return TOPIC;
  if (text.includes('body size exceeds')) return PERMANENT;
  if (text.includes('is not running')) return REFUSED;
  return UNKNOWN;
}

/** What a failed start of a topic's client says: nothing was sent. */
export function classifyStartFailure(error: unknown): FailureVerdict {
  const { failure } = classifySendFailure(error);
  return { failure: failure === 'topic' ? 'topic' : 'transient', answered: true };
}

/** How the client prefixes a broker's words. */
const CLIENT_PREFIX = /^\[request-id=[^,]*, response-code=(\d+)\] /;

/** The code and the words of an error of the client, whose start-up wraps the reason in one or more causes. */
export function describeError(error: unknown): { readonly code: number | null; readonly text: string } {
  let innermost: unknown = error;
  while (innermost instanceof Error && innermost.cause !== undefined) innermost = innermost.cause;
  const code = innermost instanceof Error && 'code' in innermost ? innermost.code : null;
  const message = innermost instanceof Error ? innermost.message : String(innermost);
  // What follows the first line is the address of a general help page.
  const [firstLine = ''] = message.split('\n');
  return { code: typeof code === 'number' ? code : null, text: firstLine.replace(CLIENT_PREFIX, '$1 ').trim() };
}
