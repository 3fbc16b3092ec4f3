import {
  assertPayload,
  decodeEnvelope,
  digestOf,
  encodeEnvelope,
  envelopeOf,
  ordersCatalogue,
  type Catalogue,
  type JsonValue,
} from '@nightporter/contracts';
import { eventId, isNightporterError, slotOf } from '@nightporter/protocol';
import fc from 'fast-check';
import { BSON } from 'mongodb';
import { describe, expect, it } from 'vitest';
import { documentOf, draftEvent, type DraftMoment, type DraftRules } from './draft.js';
import type { EmitRequest } from './outbox.js';

/** Lets every payload pass, so that the limits of JSON and BSON are all that is tested. */
const permissive: Catalogue = {
  ...ordersCatalogue,
  validate: (event) => ordersCatalogue.find(event.eventType) ?? ordersCatalogue.validate(event),
};
const rules: DraftRules = { source: 'orders', catalogue: permissive, envelopeBytesMax: 2_000 };
const now = new Date('2026-01-02T03:04:05.006Z');
const moment: DraftMoment = { eventId: eventId('01890a5d-ac96-774b-bcce-b302099a8057'), now, headers: {}, story: null };
const request: EmitRequest = {
  aggregateType: 'order',
  aggregateId: '1',
  eventType: 'OrderCompleted',
  payload: { a: 1 },
};

function codeOf(run: () => unknown): unknown {
  try {
    run();
  } catch (error) {
    return isNightporterError(error) ? error.code : error;
  }
  return null;
}

function isPayload(value: unknown): value is JsonValue {
  try {
    assertPayload(value);
    return true;
  } catch {
    return false;
  }
}

describe('a drafted event', () => {
  it('becomes a complete outbox document', () => {
    const document = documentOf(draftEvent(request, rules, moment), { version: 7, eventKey: 'k' });
    expect(document).toStrictEqual({
      _id: moment.eventId,
      source: 'orders',
      aggregateType: 'order',
      aggregateId: '1',
      aggregateVersion: 7,
      eventType: 'OrderCompleted',
      eventVersion: 1,
      topic: 'orders-events',
      eventKey: 'k',
      payload: { a: 1 },
      digest: digestOf(envelopeOf(document, 'original')),
      occurredAt: now,
      headers: { correlationId: moment.eventId },
      slot: slotOf('k'),
      status: 'PENDING',
      unsettled: true,
      retryCount: 0,
      nextRetryAt: null,
      lastError: null,
      createdAt: now,
      publishedAt: null,
      updatedAt: now,
      revision: 1,
      publication: null,
      skip: null,
      unanswered: false,
    });
  });

  it('belongs to the story of the first event of its transaction, unless it brings its own', () => {
    const correlation = (
      headers: EmitRequest['headers'],
      defaults: DraftMoment['headers'],
      story: string | null,
    ): string =>
      draftEvent(headers === undefined ? request : { ...request, headers }, rules, {
        ...moment,
        headers: defaults,
        story,
      }).correlationId;
    expect(correlation(undefined, {}, null)).toBe(moment.eventId);
    expect(correlation(undefined, {}, 'first')).toBe('first');
    expect(correlation(undefined, { correlationId: 'request' }, 'first')).toBe('request');
    expect(correlation({ correlationId: 'own' }, { correlationId: 'request' }, 'first')).toBe('own');
  });

  it('does not change with the object that it was made from', () => {
    const payload = { lines: [{ price: 1 }] };
    const draft = draftEvent({ ...request, payload }, rules, moment);
    payload.lines[0]!.price = 2;
    expect(draft.fields.payload).toEqual({ lines: [{ price: 1 }] });
  });

  it('is the same after BSON and after JSON, whatever its payload', () => {
    const payload = fc.anything({ stringUnit: 'binary', withNullPrototype: true }).filter(isPayload);
    fc.assert(
      fc.property(payload, (value) => {
        const draft = draftEvent({ ...request, payload: value }, { ...rules, envelopeBytesMax: 1_000_000 }, moment);
        const document = documentOf(draft, { version: 1, eventKey: 'k' });
        const stored = BSON.deserialize(BSON.serialize(document)) as typeof document;
        expect(stored).toStrictEqual(document);
        const decoded = decodeEnvelope(encodeEnvelope(envelopeOf(stored, 'original')));
        expect(decoded).toStrictEqual({ kind: 'envelope', envelope: envelopeOf(document, 'original') });
        expect(digestOf(envelopeOf(stored, 'original'))).toBe(document.digest);
      }),
      { numRuns: 500 },
    );
  });

  it.each<[string, Partial<Record<keyof EmitRequest, unknown>>, string]>([
    ['an empty aggregate id', { aggregateId: '' }, 'NP_EVENT_INVALID'],
    ['an aggregate type of another event', { aggregateType: 'reservation' }, 'NP_EVENT_INVALID'],
    ['an unknown type', { eventType: 'Unknown' }, 'NP_EVENT_UNKNOWN'],
    ['an unknown version', { eventVersion: 2 }, 'NP_EVENT_UNKNOWN'],
    ['a payload that is no JSON', { payload: { at: new Date() } }, 'NP_PAYLOAD_NOT_JSON'],
    ['no payload', { payload: undefined }, 'NP_PAYLOAD_NOT_JSON'],
    ['a payload that does not fit', { payload: { a: 1.5 } }, 'NP_EVENT_INVALID'],
    ['a negative expectedVersion', { expectedVersion: -1 }, 'NP_EVENT_INVALID'],
    ['an expectedVersion that is no integer', { expectedVersion: 1.5 }, 'NP_EVENT_INVALID'],
    ['an empty event key', { eventKey: '' }, 'NP_EVENT_INVALID'],
    ['an event key of 64 bytes', { eventKey: 'x'.repeat(64) }, 'NP_EVENT_INVALID'],
    ['an invalid date', { occurredAt: new Date(Number.NaN) }, 'NP_EVENT_INVALID'],
    ['a date beyond the year 9999', { occurredAt: new Date(253_402_300_800_000) }, 'NP_EVENT_INVALID'],
    ['an empty tenant', { headers: { tenantId: '' } }, 'NP_EVENT_INVALID'],
    ['a payload over the limit', { payload: 'x'.repeat(2_000) }, 'NP_EVENT_TOO_LARGE'],
  ])('is refused with %s', (_name, fields, code) => {
    const strict = { ...rules, catalogue: ordersCatalogue };
    const valid = { ...request, payload: {} };
    expect(codeOf(() => draftEvent(valid, strict, moment))).toBeNull();
    const chosen = code === 'NP_EVENT_TOO_LARGE' ? rules : strict;
    expect(codeOf(() => draftEvent({ ...valid, ...fields } as EmitRequest, chosen, moment))).toBe(code);
  });

  it('is measured with the longest version there can be, so that what is accepted once is accepted for ever', () => {
    const sizeAt = (version: number, filling: string): number => {
      const draft = draftEvent({ ...request, payload: filling }, { ...rules, envelopeBytesMax: 1_000_000 }, moment);
      return encodeEnvelope(envelopeOf(documentOf(draft, { version, eventKey: 'k' }), 'original')).length;
    };
    const room = rules.envelopeBytesMax - sizeAt(Number.MAX_SAFE_INTEGER, '');
    expect(codeOf(() => draftEvent({ ...request, payload: 'x'.repeat(room) }, rules, moment))).toBeNull();
    expect(codeOf(() => draftEvent({ ...request, payload: 'x'.repeat(room + 1) }, rules, moment))).toBe(
      'NP_EVENT_TOO_LARGE',
    );
    expect(sizeAt(1, 'x'.repeat(room))).toBeLessThan(rules.envelopeBytesMax);
  });
});
