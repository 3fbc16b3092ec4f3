import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { createCatalogue } from './catalogue.js';
import { breakingChanges, describeBreakingChange } from './compatibility.js';
import { defineEvent, type EventDefinition } from './event-definition.js';
import { parseReleased, releasedCatalogue } from './released.js';

const shape = {
  customer: z.string().min(1).max(200),
  note: z.string().optional(),
  state: z.enum(['new', 'old']),
  lines: z.array(z.strictObject({ product: z.string(), quantity: z.int().min(1).max(10) })).min(1),
  origin: z.union([z.string(), z.number()]),
};
const made = defineEvent({
  type: 'Made',
  version: 1,
  aggregateType: 'thing',
  topic: 'things',
  schema: z.strictObject(shape),
});
const gone = defineEvent({
  type: 'Gone',
  version: 1,
  aggregateType: 'thing',
  topic: 'things',
  schema: z.strictObject({}),
});
const released = releasedCatalogue('1.0.0', createCatalogue([made, gone]));

function brokenBy(...events: readonly EventDefinition[]): readonly string[] {
  return breakingChanges(released, { events }).map(describeBreakingChange);
}

/** The event with other fields than the release has. */
function madeOf(fields: z.core.$ZodLooseShape): EventDefinition {
  return { ...made, schema: z.strictObject({ ...shape, ...fields }) };
}

const { customer, ...withoutCustomer } = shape;
const { note, ...withoutNote } = shape;
const line = { product: z.string(), quantity: z.int().min(1).max(10) };

describe('a later catalogue', () => {
  it.each<[string, readonly EventDefinition[]]>([
    ['is the same', [made, gone]],
    ['has a new optional field', [madeOf({ more: z.string().optional() }), gone]],
    [
      'has a new optional field deep inside',
      [madeOf({ lines: z.array(z.strictObject({ ...line, gift: z.boolean().optional() })).min(1) }), gone],
    ],
    ['has a new event', [made, gone, { ...gone, type: 'Found' }]],
    ['describes a field', [madeOf({ customer: customer.describe('who pays') }), gone]],
    ['tolerates other keys by its schema', [{ ...made, schema: z.looseObject(shape) }, gone]],
  ])('keeps its promises when it %s', (_name, events) => {
    expect(brokenBy(...events)).toEqual([]);
  });

  const at = (path: string, change: string): string => `Made version 1, ${path}: ${change} (promised by 1.0.0)`;

  it.each<[string, EventDefinition, string]>([
    ['a field removed', { ...made, schema: z.strictObject(withoutCustomer) }, at('payload.customer', 'field removed')],
    [
      'an optional field removed',
      { ...made, schema: z.strictObject(withoutNote) },
      at('payload.note', 'field removed'),
    ],
    ['a field made required', madeOf({ note: note.unwrap() }), at('payload.note', 'field made required')],
    ['a required field added', madeOf({ more: z.string() }), at('payload.more', 'field added that is required')],
    [
      'a field made optional',
      madeOf({ customer: customer.optional() }),
      at('payload.customer', 'field made optional, which readers of the release require'),
    ],
    [
      'another type',
      madeOf({ customer: z.boolean() }),
      at('payload.customer', 'type changed (type "string" → "boolean")'),
    ],
    [
      'a bound narrowed',
      madeOf({ customer: z.string().min(1).max(50) }),
      at('payload.customer', 'type narrowed (maxLength 200 → 50)'),
    ],
    [
      'a bound widened',
      madeOf({ customer: z.string().min(1).max(300) }),
      at('payload.customer', 'type widened (maxLength 200 → 300)'),
    ],
    [
      'a type narrowed inside a list',
      madeOf({ lines: z.array(z.strictObject({ ...line, quantity: z.int().min(2).max(10) })).min(1) }),
      at('payload.lines[].quantity', 'type narrowed (minimum 1 → 2)'),
    ],
    [
      'a list narrowed',
      madeOf({ lines: z.array(z.strictObject(line)).min(2) }),
      at('payload.lines', 'type narrowed (minItems 1 → 2)'),
    ],
    [
      'an enumeration narrowed',
      madeOf({ state: z.enum(['new']) }),
      at('payload.state', 'type narrowed (enum ["new","old"] → ["new"])'),
    ],
    [
      'a pattern added',
      madeOf({ customer: customer.regex(/^c/) }),
      at('payload.customer', 'type narrowed (pattern none → "^c")'),
    ],
    ['another topic', { ...made, topic: 'others' }, at('topic', 'changed from things to others')],
    ['another aggregate type', { ...made, aggregateType: 'item' }, at('aggregateType', 'changed from thing to item')],
  ])('is refused for %s', (_name, event, breach) => {
    expect(brokenBy(event, gone)).toContain(breach);
  });

  it('is refused for a branch of a union that went', () => {
    expect(brokenBy(madeOf({ origin: z.string() }), gone).join()).toContain('payload.origin: type ');
  });

  it('is refused for an event removed', () => {
    expect(brokenBy(made)).toEqual(['Gone version 1, type: event removed (promised by 1.0.0)']);
  });

  it('is refused for a version changed without upcaster', () => {
    expect(brokenBy({ ...made, version: 2 }, gone)).toEqual([
      at('version', 'version removed'),
      at('version', 'version changed without upcaster: none makes version 2 from version 1'),
    ]);
    const second = { ...made, version: 2 };
    expect(brokenBy(made, second, gone)).toEqual([
      at('version', 'version changed without upcaster: none makes version 2 from version 1'),
    ]);
  });

  it('may change anything in a new version that is upcast', () => {
    const second = defineEvent({
      type: 'Made',
      version: 2,
      aggregateType: 'thing',
      topic: 'things',
      schema: z.strictObject({ customers: z.array(z.string()) }),
      upcast: { from: made, data: (previous) => ({ customers: [previous.customer] }) },
    });
    expect(brokenBy(made, second, gone)).toEqual([]);
  });

  it('is refused for a change inside a recursive schema', () => {
    const tree = (leaf: z.ZodType): z.ZodType => {
      const node: z.ZodType = z.strictObject({
        leaf,
        get children() {
          return z.array(node);
        },
      });
      return node;
    };
    const grown = (leaf: z.ZodType): EventDefinition => ({ ...gone, type: 'Grown', schema: tree(leaf) });
    const forest = releasedCatalogue('1.0.0', createCatalogue([grown(z.string())]));
    expect(breakingChanges(forest, { events: [grown(z.string())] })).toEqual([]);
    expect(breakingChanges(forest, { events: [grown(z.number())] })).toMatchObject([{ eventType: 'Grown' }]);
  });
});

describe('a released catalogue', () => {
  it('is the same after it was written and read', () => {
    expect(parseReleased(JSON.stringify(released), 'a file')).toEqual(released);
  });

  it.each(['', '{}', '{"release":"1","events":[{"type":"A"}]}'])('is refused as %j', (text) => {
    expect(() => parseReleased(text, 'released/1.json')).toThrow(/released\/1\.json is no released catalogue/);
  });
});
