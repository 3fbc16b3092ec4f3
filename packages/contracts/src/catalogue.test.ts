import { aggregateVersion, eventId, isNightporterError } from '@nightporter/protocol';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { createCatalogue } from './catalogue.js';
import type { EventEnvelope, JsonValue } from './envelope.js';
import { defineEvent, type EventDefinition, type NewestData } from './event-definition.js';
import { ordersCatalogue } from './orders-catalogue.js';

const noted = defineEvent({
  type: 'Noted',
  version: 1,
  aggregateType: 'note',
  topic: 'notes',
  schema: z.strictObject({ text: z.string() }),
});
const notedAgain = defineEvent({
  type: 'Noted',
  version: 2,
  aggregateType: 'note',
  topic: 'notes',
  schema: z.strictObject({ text: z.string(), tags: z.array(z.string()) }),
  upcast: { from: noted, data: ({ text }) => ({ text, tags: [] }) },
});
const withoutUpcaster = defineEvent({
  type: 'Noted',
  version: 2,
  aggregateType: 'note',
  topic: 'notes',
  schema: z.strictObject({ text: z.string(), tags: z.array(z.string()) }),
});
const catalogue = createCatalogue([noted, notedAgain]);

function codeOf(run: () => unknown): unknown {
  try {
    run();
  } catch (error) {
    return isNightporterError(error) ? error.code : error;
  }
  return null;
}

function envelope(fields: Partial<EventEnvelope>): EventEnvelope {
  return {
    eventId: eventId('e1'),
    source: 'notes',
    eventType: 'Noted',
    eventVersion: 1,
    aggregateType: 'note',
    aggregateId: '1',
    aggregateVersion: aggregateVersion(1),
    occurredAt: '2026-01-02T03:04:05.006Z',
    data: { text: 'x' },
    ...fields,
  };
}

describe('a catalogue', () => {
  it('finds an event in its version, or in its latest', () => {
    expect(catalogue.find('Noted', 1)).toBe(noted);
    expect(catalogue.find('Noted')).toBe(notedAgain);
    expect(catalogue.find('Noted', 3)).toBeUndefined();
    expect(catalogue.find('Unknown')).toBeUndefined();
    expect(catalogue.topics).toEqual(['notes']);
  });

  it('validates a payload against the version that was asked for', () => {
    expect(catalogue.validate({ eventType: 'Noted', eventVersion: 1, payload: { text: 'x' } })).toBe(noted);
    expect(codeOf(() => catalogue.validate({ eventType: 'Noted', payload: { text: 'x' } }))).toBe('NP_EVENT_INVALID');
  });

  it('does not know other types and versions', () => {
    expect(codeOf(() => catalogue.validate({ eventType: 'Other', payload: {} }))).toBe('NP_EVENT_UNKNOWN');
    expect(codeOf(() => catalogue.validate({ eventType: 'Noted', eventVersion: 9, payload: {} }))).toBe(
      'NP_EVENT_UNKNOWN',
    );
    expect(codeOf(() => catalogue.validate({ eventType: '__proto__', payload: {} }))).toBe('NP_EVENT_UNKNOWN');
  });

  it('names the place of what does not fit', () => {
    const payload = { text: 'x', tags: ['a', 7] };
    expect(() => catalogue.validate({ eventType: 'Noted', payload })).toThrow(/Noted version 2 .*payload\.tags\[1\]: /);
  });

  it('refuses a key that the schema does not know, when it is written', () => {
    expect(
      codeOf(() => catalogue.validate({ eventType: 'Noted', eventVersion: 1, payload: { text: 'x', more: 1 } })),
    ).toBe('NP_EVENT_INVALID');
  });

  it('reports a schema that fails by itself as an invalid event', () => {
    const failing = z.unknown().refine(() => {
      throw new Error('broken schema');
    });
    const waiting = z.unknown().refine(async () => Promise.resolve(true));
    for (const schema of [failing, waiting]) {
      const broken = createCatalogue([{ ...noted, schema }]);
      expect(codeOf(() => broken.validate({ eventType: 'Noted', payload: {} }))).toBe('NP_EVENT_INVALID');
    }
  });

  it.each<[string, readonly EventDefinition[]]>([
    ['a version defined twice', [noted, { ...noted }]],
    ['one aggregate type on two topics', [noted, { ...noted, type: 'NoteRead', topic: 'other' }]],
    ['one type for two aggregate types', [noted, { ...notedAgain, aggregateType: 'memo' }]],
    ['a type that is no name', [{ ...noted, type: 'a b' }]],
    ['an aggregate type that is no name', [{ ...noted, aggregateType: 'a/b' }]],
    ['a topic that the broker would refuse', [{ ...noted, topic: 'a.b' }]],
    ['version 0', [{ ...noted, version: 0 }]],
    ['a version without upcaster from the one before', [noted, withoutUpcaster]],
    ['a version that is upcast from one that is not here', [notedAgain]],
    ['a hole between two versions', [noted, { ...notedAgain, version: 3 }]],
    [
      'an upcaster from another type',
      [noted, { ...notedAgain, upcast: { ...notedAgain.upcast!, from: { type: 'Other', version: 1 } } }],
    ],
  ])('is refused with %s', (_name, events) => {
    expect(codeOf(() => createCatalogue(events))).toBe('NP_CONFIG_INVALID');
  });
});

describe('reading an event by a catalogue', () => {
  it.each<[string, Partial<EventEnvelope>, string]>([
    ['its own version', {}, 'event'],
    ['a type that is not in the catalogue', { eventType: 'Other', data: 7 }, 'event'],
    ['keys that a newer producer added', { data: { text: 'x', more: 1 } }, 'event'],
    ['a newer version', { eventVersion: 3 }, 'unsupported'],
    ['data that does not fit', { data: { text: 7 } }, 'invalid'],
    ['data that does not fit beside an added key', { data: { more: 1 } }, 'invalid'],
  ])('judges %s', (_name, fields, kind) => {
    expect(catalogue.read(envelope(fields)).kind).toBe(kind);
  });

  it('calls an older version that was removed invalid, not newer', () => {
    const later = createCatalogue([withoutUpcaster]);
    expect(later.read(envelope({})).kind).toBe('invalid');
  });

  it('hands on exactly the envelope that it was given, when its version is the newest', () => {
    const given = envelope({ eventVersion: 2, data: { text: 'x', tags: [], more: 1 } });
    const verdict = catalogue.read(given);
    expect(verdict.kind === 'event' && verdict.envelope).toBe(given);
  });
});

describe('upcasting', () => {
  const notedWell = defineEvent({
    type: 'Noted',
    version: 3,
    aggregateType: 'note',
    topic: 'notes',
    schema: z.strictObject({ title: z.string().min(1), tags: z.array(z.string()) }),
    upcast: {
      from: notedAgain,
      data: (previous) => {
        previous.tags.push('upcast');
        return { title: previous.text, tags: previous.tags };
      },
    },
  });
  const chain = createCatalogue([noted, notedAgain, notedWell]);

  it('brings data through every version to the newest, whose handler it meets', () => {
    const verdict = chain.read(envelope({ data: { text: 'x' } }));
    expect(verdict).toMatchObject({
      kind: 'event',
      envelope: { eventVersion: 3, data: { title: 'x', tags: ['upcast'] } },
    });
  });

  it('leaves the envelope that it was given as it was written, whatever an upcaster does to its data', () => {
    const given = envelope({ eventVersion: 2, data: { text: 'x', tags: ['a'] } });
    const before = structuredClone(given);
    expect(chain.read(given).kind).toBe('event');
    expect(given).toEqual(before);
  });

  it('names the step whose result does not fit, and the one that throws', () => {
    const reasonOf = (catalogueOf: typeof chain, fields: Partial<EventEnvelope>): string => {
      const verdict = catalogueOf.read(envelope(fields));
      return verdict.kind === 'invalid' ? verdict.reason : verdict.kind;
    };
    expect(reasonOf(chain, { data: { text: '' } })).toMatch(/version 1 could not be read as version 3: payload\.title/);
    const throwing = {
      ...notedAgain,
      upcast: {
        from: noted,
        data: (): never => {
          throw new Error('no tags');
        },
      },
    };
    expect(reasonOf(createCatalogue([noted, throwing, notedWell]), {})).toMatch(
      /as version 2: the upcaster threw: no tags/,
    );
  });

  it('types the data by the newest version', () => {
    const data: NewestData<typeof chain.events, 'Noted'> = { title: 'x', tags: [] };
    // @ts-expect-error the text belongs to an older version
    expect(data.text).toBeUndefined();
  });
});

describe('the orders catalogue', () => {
  const line = { productId: 'p/1 😀', quantity: 2, unitPriceMinor: 250 };

  it.each<[string, JsonValue]>([
    ['OrderCreated', { customerId: 'c', currency: 'EUR', lines: [line], totalMinor: 500 }],
    ['OrderPaid', { transactionId: 't', amountMinor: 500, currency: 'EUR' }],
    ['OrderCancelled', { reason: 'out of stock', wasPaid: false }],
    ['OrderCompleted', {}],
    ['InventoryReserved', { orderId: 'o', lines: [{ productId: 'p', quantity: 1 }] }],
    ['InventoryRejected', { orderId: 'o', shortages: [{ productId: 'p', requested: 2, available: 0 }] }],
    ['InventoryReleased', { orderId: 'o', lines: [{ productId: 'p', quantity: 1 }] }],
  ])('takes %s', (eventType, payload) => {
    expect(ordersCatalogue.validate({ eventType, payload }).topic).toBe(
      eventType.startsWith('Order') ? 'orders-events' : 'inventory-events',
    );
  });

  it.each<[string, JsonValue]>([
    ['OrderCreated', { customerId: 'c', currency: 'EUR', lines: [], totalMinor: 0 }],
    ['OrderCreated', { customerId: 'c', currency: 'eur', lines: [line], totalMinor: 500 }],
    ['OrderCreated', { customerId: 'c', currency: 'EUR', lines: [{ ...line, quantity: 0 }], totalMinor: 0 }],
    ['OrderCreated', { customerId: 'c', currency: 'EUR', lines: [{ ...line, unitPriceMinor: 2.5 }], totalMinor: 5 }],
    ['OrderPaid', { transactionId: 't\n', amountMinor: 500, currency: 'EUR' }],
    ['OrderPaid', { transactionId: 't', amountMinor: -1, currency: 'EUR' }],
    ['OrderCompleted', { at: 'now' }],
  ])('refuses %s %j', (eventType, payload) => {
    expect(codeOf(() => ordersCatalogue.validate({ eventType, payload }))).toBe('NP_EVENT_INVALID');
  });
});
