import { NightporterError } from '@nightporter/protocol';
import { codeOf, faultOf, hasLabel, messageOf, storeUnavailable } from './driver-errors.js';

/** ChangeStreamHistoryLost, ChangeStreamFatalError, InvalidResumeToken, CappedPositionLost. */
const LOST_CODES = new Set([286, 280, 260, 136]);
const AUTHENTICATION_FAILED = 18;
const UNAUTHORIZED = 13;
const INTERRUPTED = new Set([50, 262, 237, 11601]);

/**
 * What an error of a change stream means to the relay: lost, or to be tried again at the same token.
 *
 * `resuming` is true while a stream is opened at a token. Servers have many codes for a token that they cannot use, some without a name,
 * so whatever the server then refuses counts against the token, except what would hit any stream. To call a good token lost costs a
 * sweep; to try a bad one for ever costs the stream.
 */
export function captureError(error: unknown, { resuming, place }: { resuming: boolean; place: string }): unknown {
  if (error instanceof NightporterError) return error;
  const fault = faultOf(error);
  if (fault === 'foreign') return error;
  if (isLost(error) || (resuming && fault === 'refused' && countsAgainstToken(error))) return captureLost(place, error);
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

function countsAgainstToken(error: unknown): boolean {
  const code = codeOf(error);
  return !Number.isNaN(code) && code !== AUTHENTICATION_FAILED && code !== UNAUTHORIZED && !INTERRUPTED.has(code);
}
