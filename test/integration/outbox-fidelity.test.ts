import { connect, note, outboxFixture, type OutboxFixture } from './outbox-fixture.js';
import type { MongoClient } from 'mongodb';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { sharedStack } from '../support/stack.js';
import { decodeEnvelope, digestOf, encodeEnvelope, envelopeOf } from '@nightporter/contracts';
import { aggregateKey } from '@nightporter/protocol';

let client: MongoClient;
let fixture: OutboxFixture;

beforeAll(async () => {
  client = await connect(sharedStack().mongodbUri);
});

afterAll(async () => {
  await client.close();
});

beforeEach(async () => {
  fixture = await outboxFixture(client);
});

describe('what is stored', () => {
  it.each<[string, unknown]>([
    ['emoji', { '😀': '😀 text' }],
    ['an empty object', {}],
    ['an empty key', { '': { '': [] } }],
    ['keys in every order', { b: 1, a: { z: 1, y: 2 }, 10: 1, 9: 2 }],
    ['control characters', 'a\0b\u001f\u2028\ufeff'],
    ['numbers', [0, 1, -1, 0.1, 1.5, -2.25e-7, 5e-324, 2 ** 31, -(2 ** 31) - 1, 2 ** 53 - 1]],
    ['names that objects have', { constructor: 1, toString: 2, hasOwnProperty: 3, length: 4 }],
    ['64 levels', nested(64)],
    ['null', null],
    ['look-alikes of BSON types', { oid: '507f1f77bcf86cd799439011', date: '2026-01-01T00:00:00Z', low: 1, high: 2 }],
  ])('is identical at the consumer: %s', async (_name, payload) => {
    const { outbox, rows } = fixture;
    const { eventId } = await outbox.transaction(({ emit }) => emit(note('a', { payload })));
    const stored = await rows.findOne({ _id: eventId });
    const envelope = envelopeOf(stored!, 'original');
    expect(envelope.data).toStrictEqual(payload);
    expect(decodeEnvelope(encodeEnvelope(envelope))).toStrictEqual({ kind: 'envelope', envelope });
    expect(digestOf(envelope)).toBe(stored?.digest);
  });

  it.each<[string, unknown, RegExp]>([
    ['__proto__', JSON.parse('{"a":{"__proto__":{}}}'), /payload\.a\.__proto__/],
    ['$set', { $set: { a: 1 } }, /payload\["\$set"\]/],
    ['a.b', { lines: [{ 'a.b': 1 }] }, /payload\.lines\[0\]\["a\.b"\]/],
    ['a lone surrogate', { text: '\ud83d' }, /payload\.text/],
    ['2^53 + 1', JSON.parse('{"n":9007199254740993}'), /payload\.n/],
    ['1e400', JSON.parse('{"n":1e400}'), /payload\.n/],
    ['-0', JSON.parse('{"n":-0}'), /payload\.n/],
    ['300 levels', nested(300), /nested deeper than 64/],
  ])('is refused with its place named where it could not be: %s', async (_name, payload, place) => {
    const { outbox, heads } = fixture;
    const refused = outbox.transaction(({ emit }) => emit(note('a', { payload })));
    await expect(refused).rejects.toMatchObject({ code: 'NP_PAYLOAD_NOT_JSON', message: expect.stringMatching(place) });
    expect(await heads.countDocuments()).toBe(0);
  });

  it.each(['a b', 'a/b', 'a:b', 'x'.repeat(200), '😀😀', '%', 'a.b', '$a', 'ключ'])(
    'keeps the aggregate id %j, with a key and a message group that the broker takes',
    async (aggregateId) => {
      const { outbox, rows } = fixture;
      await outbox.transaction(({ emit }) => emit(note(aggregateId)));
      const { aggregateVersion } = await outbox.transaction(({ emit }) => emit(note(aggregateId)));
      expect(aggregateVersion).toBe(2);
      const stored = await rows.findOne({ aggregateId, aggregateVersion: 2 as typeof aggregateVersion });
      expect(Buffer.byteLength(stored?.eventKey ?? '')).toBeLessThanOrEqual(63);
      expect(stored?.eventKey).toMatch(/^[!-~]+$/);
      expect(aggregateKey({ source: 'tests', aggregateType: 'note', aggregateId })).toMatch(/^[!-~]+$/);
    },
  );
});

function nested(levels: number): unknown {
  let value: unknown = 1;
  for (let level = 0; level < levels; level += 1) value = level % 2 === 0 ? { inner: value } : [value];
  return value;
}
