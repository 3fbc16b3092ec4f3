/**
 * Every error code of nightporter, in one table. docs/errors.md documents each; a test compares the two.
 * Codes are stable: people match on them.
 */
export const ERROR_CODES = {
  NP_INTERNAL: 'An invariant of nightporter is broken; the process should restart.',
  NP_CONFIG_INVALID: 'A configuration value is missing or out of range.',
  NP_EVENT_INVALID: 'An event that was emitted does not fit its schema or its limits.',
  NP_PAYLOAD_NOT_JSON: 'A payload holds something that plain JSON cannot carry exactly.',
  NP_EVENT_TOO_LARGE: 'The encoded envelope of an event is larger than the limit.',
  NP_EVENT_UNKNOWN: 'The catalogue has no such event type or version.',
  NP_NO_TRANSACTION: 'emit() was called outside a transaction.',
  NP_VERSION_EXPECTED: 'The aggregate is not at the expected version.',
  NP_VERSION_CONFLICT: 'Two different events claim one version of an aggregate.',
  NP_REPLAY_UNFINISHED: 'A replay has begun to prepare this group and has not finished.',
  NP_GROUP_START_UNAVAILABLE: 'A group is to start from the beginning, but retention has deleted part of it.',
  NP_POSITION_LOST: 'A group had settled an event, but its position is gone, and its inbox record has expired.',
  NP_DIGEST_MISMATCH: 'The event read is not the event that was written.',
  NP_MESSAGE_UNREADABLE: 'A message has no readable envelope.',
  NP_EVENT_VERSION_UNSUPPORTED: 'The event has a newer major version than this consumer understands.',
  NP_HANDLER_FAILED: 'A handler threw.',
  NP_PUBLISH_FAILED: 'The broker did not take a message.',
  NP_BROKER_UNAVAILABLE: 'The broker did not answer.',
  NP_PREFLIGHT_TOPIC_MISSING: 'The broker has no such topic.',
  NP_PREFLIGHT_TOPIC_TYPE: 'A topic does not take FIFO messages.',
  NP_PREFLIGHT_GROUP_MISSING: 'The broker has no such consumer group.',
  NP_PREFLIGHT_GROUP_UNORDERED: 'A consumer group reads its topic out of order.',
  NP_PREFLIGHT_GROUP_RETRIES: 'A consumer group gives messages up too early.',
  NP_STORE_UNAVAILABLE: 'The database did not answer, or its answer was lost.',
  NP_TRANSACTION_CONFLICT: 'A concurrent transaction touched the same documents.',
  NP_TRANSACTION_ABORTED: 'The database aborted a transaction while its work went on, in every run.',
  NP_CAPTURE_LOST: 'The change stream cannot be resumed at the saved token.',
  NP_ACTION_INVALID: 'An operator’s action does not say who does it and why, or names what cannot be.',
  NP_ARCHIVE_FAILED: 'An archive file could not be written or read, or is not what was written.',
  NP_WAREHOUSE_FAILED: 'A file of the warehouse could not be written or read, or is not what was written.',
  NP_LEASE_LOST: 'Another instance holds the lease.',
  NP_EMBEDDED_TOOL_MISSING: 'A tool that the embedded servers need (Java, Maven, Python) is missing or too old.',
  NP_EMBEDDED_PREPARE_FAILED: 'What the embedded servers run from could not be downloaded, installed or compiled.',
  NP_EMBEDDED_START_FAILED: 'An embedded server did not start, or could not be reached.',
  NP_EMBEDDED_CONTROL_FAILED: 'A running embedded server refused or did not answer a request of its owner.',
  NP_EMBEDDED_NOT_OURS: 'The server was given from outside, so it is not ours to kill, restart or configure.',
} as const;

export type ErrorCode = keyof typeof ERROR_CODES;

/** The one error class: a stable `code`, and a message that names the value, the place and the accepted range. */
export class NightporterError extends Error {
  readonly code: ErrorCode;

  constructor(code: ErrorCode, message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.name = 'NightporterError';
    this.code = code;
  }
}

export function isNightporterError(error: unknown, code?: ErrorCode): error is NightporterError {
  return error instanceof NightporterError && (code === undefined || error.code === code);
}
