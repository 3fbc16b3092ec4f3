import { NightporterError } from '@nightporter/protocol';
import { codeOf, faultOf, hasLabel, messageOf, storeUnavailable } from './driver-errors.js';

/** ChangeStreamHistoryLost, ChangeStreamFatalError, InvalidResumeToken, CappedPositionLost, BSONObjectTooLarge. */
const LOST_CODES = new Set([286, 280, 260, 136, 10334]);
const AUTHENTICATION_FAILED = 18;
const UNAUTHORIZED = 13;
const INTERRUPTED = new Set([50, 262, 237, 11601]);

/**
 * What an error of a change stream means to the relay: lost, or to be tried again at the same token.
 *
 * `isSuspect` is true while a stream is opened at a token, and when the server has refused to go on from there before. Servers have many
 * codes for a place that they cannot go on from, some without a name, so whatever they then refuse counts against the token, except what
 * would hit any stream. To call a good token lost costs a sweep; to try a bad one for ever costs the stream.
 */
export function captureError(error: unknown, { isSuspect, place }: { isSuspect: boolean; place: string }): unknown {
  if (error instanceof NightporterError) return error;
  if (faultOf(error) === 'foreign') return error;
  if (isLost(error) || (isSuspect && isRefusal(error))) return captureLost(place, error);
  return storeUnavailable(`reading the change stream of ${place}`, error);
}

export function captureLost(place: string, reason: unknown): NightporterError {
  const message = `The change stream of ${place} cannot be resumed: ${messageOf(reason)}`;
  return new NightporterError('NP_CAPTURE_LOST', message, { cause: reason });
}

function isLost(error: unknown): boolean {
  return (
    LOST_CODES.has(codeOf(error)) ||
    hasLabel(error, 'NonResumableChangeStreamError') ||
    /resume token|resume point|resume of change stream/i.test(messageOf(error))
  );
}

/** Whether the server refuses this stream for a reason of its own. */
export function isRefusal(error: unknown): boolean {
  const code = codeOf(error);
  return (
    faultOf(error) === 'refused' &&
    !Number.isNaN(code) &&
    code !== AUTHENTICATION_FAILED &&
    code !== UNAUTHORIZED &&
    !INTERRUPTED.has(code)
  );
}
