import { aggregateVersion, eventId } from '@nightporter/protocol';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { decodeEnvelope, encodeEnvelope } from './codec.js';
import type { EventEnvelope, JsonValue } from './envelope.js';
import { assertPayload } from './payload.js';

const envelope: EventEnvelope = {
  eventId: eventId('01890a5d-ac96-774b-bcce-b302099a8057'),
  source: 'orders',
  eventType: 'OrderCreated',
  eventVersion: 1,
  aggregateType: 'order',
  aggregateId: '1',
  aggregateVersion: aggregateVersion(1),
  occurredAt: '2026-01-02T03:04:05.006Z',
  data: {},
};

function isPayload(value: unknown): value is JsonValue {
  try {
    assertPayload(value);
    return true;
  } catch {
    return false;
  }
}

function bytesOf(value: unknown): Uint8Array {
  return new TextEncoder().encode(JSON.stringify(value));
}

describe('the codec of message bodies', () => {
  it('gives back the envelope that it was given, whatever its data', () => {
    const payload = fc.anything({ stringUnit: 'binary', withNullPrototype: false }).filter(isPayload);
    fc.assert(
      fc.property(payload, (data) => {
        expect(decodeEnvelope(encodeEnvelope({ ...envelope, data }))).toStrictEqual({
          kind: 'envelope',
          envelope: { ...envelope, data },
        });
      }),
    );
  });

  it('keeps fields that it does not know, for the digest counts them', () => {
    const later = { ...envelope, partition: { of: 3 } };
    expect(decodeEnvelope(bytesOf(later))).toEqual({ kind: 'envelope', envelope: later });
  });

  it.each<[string, Uint8Array, RegExp]>([
    ['nothing', new Uint8Array(0), /empty/],
    ['bytes that are not UTF-8', Uint8Array.of(0x7b, 0xff, 0x7d), /not UTF-8/],
    ['a byte order mark', Uint8Array.of(0xef, 0xbb, 0xbf, ...encodeEnvelope(envelope)), /not JSON/],
    ['half a body', encodeEnvelope(envelope).slice(0, 20), /not JSON/],
    ['a JSON array', bytesOf([envelope]), /not an object/],
    ['a JSON null', bytesOf(null), /not an object/],
    ['an envelope without id', bytesOf({ ...envelope, eventId: undefined }), /eventId: /],
    ['an empty aggregate id', bytesOf({ ...envelope, aggregateId: '' }), /aggregateId: /],
    ['version 0', bytesOf({ ...envelope, aggregateVersion: 0 }), /aggregateVersion: /],
    ['a version that is no integer', bytesOf({ ...envelope, aggregateVersion: 1.5 }), /aggregateVersion: /],
    ['an unsafe version', bytesOf({ ...envelope, aggregateVersion: 2 ** 60 }), /aggregateVersion: /],
    ['a date that is none', bytesOf({ ...envelope, occurredAt: 'yesterday' }), /occurredAt: /],
    ['an envelope without data', bytesOf({ ...envelope, data: undefined }), /data: is missing/],
    ['several faults', bytesOf({ data: 1 }), /eventId: .*; source: /],
    [
      'data nested deeper than MongoDB could keep',
      new TextEncoder().encode(
        JSON.stringify({ ...envelope, data: 'X' }).replace('"X"', '['.repeat(65) + ']'.repeat(65)),
      ),
      /nested deeper than 64/,
    ],
    [
      'data nested a hundred thousand levels deep',
      new TextEncoder().encode(
        JSON.stringify({ ...envelope, data: 'X' }).replace('"X"', '['.repeat(1e5) + ']'.repeat(1e5)),
      ),
      /nested deeper than 64/,
    ],
    [
      'a field of a later version nested twenty thousand levels deep',
      new TextEncoder().encode(
        JSON.stringify({ ...envelope, later: 'X' }).replace('"X"', '['.repeat(2e4) + ']'.repeat(2e4)),
      ),
      /beside data is nested deeper than 64/,
    ],
  ])('calls %s unreadable and says why', (_name, bytes, reason) => {
    const decoded = decodeEnvelope(bytes);
    expect(decoded.kind).toBe('unreadable');
    expect(decoded.kind === 'unreadable' && decoded.reason).toMatch(reason);
  });

  it('never throws', () => {
    fc.assert(
      fc.property(
        fc.oneof(
          fc.uint8Array(),
          fc.json().map((text) => new TextEncoder().encode(text)),
        ),
        (bytes) => {
          expect(decodeEnvelope(bytes).kind).toMatch(/^(envelope|unreadable)$/);
        },
      ),
    );
  });
});
