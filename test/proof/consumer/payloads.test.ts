import { createCatalogue, defineEvent } from '@nightporter/contracts';
import { createOutbox } from '@nightporter/outbox';
import { createLogger, loadConfig } from '@nightporter/runtime';
import { defineConsumer } from '@nightporter/worker';
import { afterEach, expect, it } from 'vitest';
import { z } from 'zod';
import { until } from '../../e2e/programs.js';
import { showFigures } from '../../support/figures.js';
import { createGroup, sharedStack, uniqueName } from '../../support/stack.js';
import { openJournalWorld, type JournalWorld } from '../support/journal-world.js';

const PAYLOADS: Readonly<Record<string, unknown>> = {
  emoji: { '😀': '😀 text' },
  'an empty object': {},
  'an empty key': { '': { '': [] } },
  'keys in every order': { b: 1, a: { z: 1, y: 2 }, 10: 1, 9: 2 },
  'control characters': 'a\0b\u001f\u2028\ufeff',
  numbers: [0, 1, -1, 0.1, 1.5, -2.25e-7, 5e-324, 2 ** 31, -(2 ** 31) - 1, 2 ** 53 - 1],
  'names that objects have': { constructor: 1, toString: 2, hasOwnProperty: 3, length: 4 },
  '64 levels': Array.from({ length: 64 }).reduce((inner) => [inner], 'deep'),
  'look-alikes of BSON types': { oid: '507f1f77bcf86cd799439011', date: '2026-01-01T00:00:00Z', low: 1, high: 2 },
  null: null,
};
const REFUSED: Readonly<Record<string, unknown>> = {
  ['__proto__']: JSON.parse('{"a":{"__proto__":{}}}'),
  $set: { $set: { a: 1 } },
  'a.b': { lines: [{ 'a.b': 1 }] },
  'a lone surrogate': { text: '\ud83d' },
  '2^53 + 1': JSON.parse('{"n":9007199254740993}'),
  '1e400': JSON.parse('{"n":1e400}'),
  '-0': { n: -0 },
};
const IDS = ['a b', 'a/b', 'a:b', 'x'.repeat(200), '😀😀', '%', 'a.b', '$a', 'ключ'];

let world: JournalWorld;
afterEach(() => world.close());

/** A member of a group of its own, in this process. Returns what its handler has got, by event. */
async function startReader(catalogue: ReturnType<typeof catalogueOn>): Promise<ReadonlyMap<string, Got>> {
  const group = await createGroup({ name: uniqueName('reader'), topics: [world.topic] });
  const got = new Map<string, Got>();
  const worker = defineConsumer({
    name: 'reader',
    description: 'Keeps what it gets.',
    port: 0,
    database: group,
    group,
    source: 'reader',
    catalogue,
    subscriptions: [{ producer: world.producer, topic: world.topic, topicSetting: 'TOPIC' }],
    handlers: ({ database }) => ({
      Noted: async ({ event, session }) => {
        await database.collection<{ _id: string }>('effects').insertOne({ _id: event.eventId }, { session });
        got.set(event.eventId, { aggregateId: event.aggregateId, data: event.data });
      },
    }),
    prepare: async ({ database }) => {
      await database.createCollection('effects');
    },
  });
  const { rocketmqEndpoints } = sharedStack();
  const settings = { MONGODB_URI: world.mongodbUri, ROCKETMQ_ENDPOINTS: rocketmqEndpoints };
  const config = loadConfig(worker.config, settings);
  const logger = createLogger({ name: 'reader', level: 'silent' });
  const service = await worker.start({ config, logger, signal: new AbortController().signal });
  world.atEnd(() => service.stop());
  return got;
}

interface Got {
  readonly aggregateId: string;
  readonly data: unknown;
}

function catalogueOn(topic: string) {
  const noted = defineEvent({ type: 'Noted', version: 1, aggregateType: 'note', topic, schema: z.unknown() });
  return createCatalogue([noted]);
}

it('what was emitted is what the handler gets, through outbox, relay and broker, and what could not be is refused', async (context) => {
  world = await openJournalWorld();
  const catalogue = catalogueOn(world.topic);
  const outbox = createOutbox({ client: world.client, database: world.producer, source: 'payloads', catalogue });
  const note = async (aggregateId: string, payload: unknown): Promise<Emitted> => {
    const request = { aggregateType: 'note', aggregateId, eventType: 'Noted', payload };
    const { eventId } = await outbox.transaction(({ emit }) => emit(request));
    return { eventId, aggregateId, data: payload };
  };
  const got = await startReader(catalogue);
  const emitted: Emitted[] = [];
  for (const [name, payload] of Object.entries(PAYLOADS)) emitted.push(await note(name, payload));
  for (const id of IDS) emitted.push(await note(id, { id }));
  for (const [name, payload] of Object.entries(REFUSED))
    await expect(note('refused', payload), name).rejects.toMatchObject({ code: 'NP_PAYLOAD_NOT_JSON' });
  await until(`${emitted.length} events are read`, () => Promise.resolve(got.size === emitted.length), 60_000);
  for (const { aggregateId, data, eventId } of emitted) {
    expect(got.get(eventId), aggregateId).toStrictEqual({ aggregateId, data });
  }
  expect(await world.outbox.countDocuments({ aggregateId: 'refused' })).toBe(0);
  showFigures(context, {
    payloads: Object.keys(PAYLOADS).length,
    ids: IDS.length,
    identical: emitted.length,
    refused: Object.keys(REFUSED).length,
  });
});

interface Emitted extends Got {
  readonly eventId: string;
}
