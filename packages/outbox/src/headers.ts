import type { EventHeaders } from '@nightporter/contracts';
import { hasControlCharacter, hasLoneSurrogate, shown } from '@nightporter/contracts';
import { NightporterError, isTraceparent } from '@nightporter/protocol';

/** Printable ASCII, as W3C Trace Context has it; longer ones may be dropped, and are. */
const TRACESTATE = /^[\x20-\x7e]{1,512}$/;

const TEXT_HEADERS = ['tenantId', 'correlationId', 'causationId'] as const;
const KNOWN_HEADERS: ReadonlySet<string> = new Set(['traceparent', 'tracestate', ...TEXT_HEADERS]);
const TEXT_LENGTH_MAX = 256;

/**
 * The headers of an event: its own, else the given defaults. Trace context goes as one, so that a tracestate never stands beside a
 * foreign traceparent, and is left out where it is malformed, as W3C asks: a business transaction must not fail for its tracing.
 *
 * @throws NP_EVENT_INVALID for any other header that is unknown or out of range.
 */
export function mergeHeaders(own: EventHeaders, defaults: EventHeaders): EventHeaders {
  assertKnown(own);
  assertKnown(defaults);
  const merged: Partial<Record<keyof EventHeaders, string>> = {};
  for (const name of TEXT_HEADERS) {
    const value: unknown = own[name] ?? defaults[name];
    if (value === undefined || value === null) continue;
    if (!isHeaderText(value)) {
      throw invalid(
        `The header ${name} is ${shown(value)}; accepted: 1 to ${TEXT_LENGTH_MAX} characters without control characters and lone surrogates.`,
      );
    }
    merged[name] = value;
  }
  return { ...traceOf(own.traceparent === undefined ? defaults : own), ...merged };
}

function traceOf({ traceparent, tracestate }: EventHeaders): EventHeaders {
  if (!isTraceparent(traceparent)) return {};
  return typeof tracestate === 'string' && TRACESTATE.test(tracestate) ? { traceparent, tracestate } : { traceparent };
}

function assertKnown(headers: EventHeaders): void {
  const unknown = Object.keys(headers).find((name) => !KNOWN_HEADERS.has(name));
  if (unknown === undefined) return;
  throw invalid(`There is no header ${shown(unknown)}; accepted: ${[...KNOWN_HEADERS].join(', ')}.`);
}

function isHeaderText(value: unknown): value is string {
  if (typeof value !== 'string' || value.trim() === '' || value.length > TEXT_LENGTH_MAX) return false;
  return !hasControlCharacter(value) && !hasLoneSurrogate(value);
}

function invalid(message: string): NightporterError {
  return new NightporterError('NP_EVENT_INVALID', message);
}
