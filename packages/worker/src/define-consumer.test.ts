import { createCatalogue, defineEvent, type EventEnvelope } from '@nightporter/contracts';
import type { HandlerContext } from '@nightporter/consumer';
import { aggregateVersion, eventId } from '@nightporter/protocol';
import { createLogger, flag, loadConfig, setting } from '@nightporter/runtime';
import type { ClientSession } from 'mongodb';
import { describe, expect, expectTypeOf, it } from 'vitest';
import { z } from 'zod';
import { defineConsumer, type ConsumerDefinition } from './define-consumer.js';
import { engineHandlers, type HandlersOf } from './handlers.js';
import { resolveSubscriptions, type Subscription } from './settings.js';

const note = { aggregateType: 'note', topic: 'notes' } as const;
const notedV1 = defineEvent({ ...note, type: 'Noted', version: 1, schema: z.strictObject({ text: z.string() }) });
const noted = defineEvent({
  ...note,
  type: 'Noted',
  version: 2,
  schema: z.strictObject({ title: z.string(), tags: z.array(z.string()) }),
  upcast: { from: notedV1, data: ({ text }) => ({ title: text, tags: [] }) },
});
const filed = defineEvent({
  type: 'Filed',
  version: 1,
  aggregateType: 'file',
  topic: 'files',
  schema: z.strictObject({ size: z.number() }),
});
const catalogue = createCatalogue([notedV1, noted, filed]);
type Events = typeof catalogue.events;

const definition: ConsumerDefinition<Events> = {
  name: 'sample-worker',
  description: 'Keeps notes.',
  port: 0,
  database: 'sample',
  group: 'sample',
  source: 'sample',
  catalogue,
  subscriptions: [{ producer: 'note-taker', topic: 'notes' }],
  handlers: {},
};

const silent = createLogger({ name: 'sample', level: 'silent' });

const environment = { MONGODB_URI: 'mongodb://127.0.0.1', ROCKETMQ_ENDPOINTS: '127.0.0.1:8081' };

describe('a worker', () => {
  it('has the settings of its subscriptions, by the names of their producers', () => {
    const subscriptions: Subscription[] = [
      { producer: 'note-taker', topic: 'notes' },
      { producer: 'files', topic: 'files', topicSetting: 'TOPIC' },
    ];
    const { config } = defineConsumer({ ...definition, subscriptions: [subscriptions[0]!, ...subscriptions.slice(1)] });
    const ledger = { NOTE_TAKER_LEDGER_URL: 'http://127.0.0.1:3010', NOTE_TAKER_LEDGER_TOKEN: 'token' };
    const values = loadConfig(config, { ...environment, NOTE_TAKER_DB: 'other', TOPIC: 'elsewhere', ...ledger });
    expect(resolveSubscriptions(subscriptions, values)).toEqual([
      { topic: 'notes', producerDatabase: 'other', ledgerServer: { url: 'http://127.0.0.1:3010', token: 'token' } },
      { topic: 'elsewhere', producerDatabase: 'files', ledgerServer: null },
    ]);
    expect(values.group).toBe('sample');
  });

  it('has its own settings, typed, in what its handlers are made from', () => {
    const settings = {
      loud: setting({ name: 'LOUD', kind: flag(), default: 'true', description: 'Whether it shouts.' }),
    };
    const worker = defineConsumer({
      ...definition,
      settings,
      handlers: ({ config }) => ({
        Noted: async ({ event, logger }) => {
          const isLoud: boolean = config.loud;
          logger.info(isLoud ? event.data.title.toUpperCase() : event.data.title);
          return Promise.resolve();
        },
      }),
    });
    expect(loadConfig(worker.config, environment).loud).toBe(true);
  });

  it('is refused where two settings would be one variable', () => {
    const twice = [
      { producer: 'notes', topic: 'notes' },
      { producer: 'notes', topic: 'files' },
    ] as const;
    expect(() => defineConsumer({ ...definition, subscriptions: twice })).toThrow(/NOTES_TOPIC/);
    const settings = { group: setting({ name: 'MY_GROUP', kind: flag(), default: 'true', description: 'x' }) };
    expect(() => defineConsumer({ ...definition, settings, handlers: {} })).toThrow(/settings group of its own/);
  });
});

describe('a definition is refused', () => {
  it('whose subscriptions share a topic', () => {
    const again = [
      { producer: 'notes', topic: 'notes' },
      { producer: 'files', topic: 'notes' },
    ] as const;
    expect(() => defineConsumer({ ...definition, subscriptions: again })).toThrow(
      /Two subscriptions of .* have the topic notes/,
    );
  });

  it.each([
    ['has a blank', 'my group', /has "my group" as the default of GROUP; accepted: 1 to 100 letters/],
    ['is too long', 'g'.repeat(101), /as the default of GROUP; accepted: 1 to 100 letters/],
    ['is empty', '', /has "" as the default of GROUP/],
    ['is one of the broker’s own', 'CID_RMQ_SYS_mine', /not beginning with CID_RMQ_SYS_/],
    ['has no number behind its @', 'sample@next', /with @ and a number for a generation/],
  ])('whose group %s, which RocketMQ would not take', (_name, group, message) => {
    expect(() => defineConsumer({ ...definition, group })).toThrow(message);
    expect(() => defineConsumer({ ...definition, group })).toThrow(
      expect.objectContaining({ code: 'NP_CONFIG_INVALID' }),
    );
  });

  it.each([
    ['database', { database: 'my.database' }, /has "my.database" as the default of MONGODB_DB/],
    [
      'topic',
      { subscriptions: [{ producer: 'x', topic: 'a topic' }] as const },
      /has "a topic" as the default of X_TOPIC/,
    ],
    ['producer', { subscriptions: [{ producer: 'x y', topic: 't' }] as const }, /has "x y" as the default of X_Y_DB/],
    ['port', { port: 65_536 }, /has "65536" as the default of PORT; accepted: a whole number from 0 to 65535/],
  ])('whose %s does not fit, before any variable is read', (_name, part, message) => {
    expect(() => defineConsumer({ ...definition, ...part })).toThrow(message);
  });

  it.each(['sample', 'a%b_c-D9', 'sample@2', 'g'.repeat(100)])('but not for the group %s', (group) => {
    expect(() => defineConsumer({ ...definition, group })).not.toThrow();
  });
});

describe('what is wrong in a definition shows before it runs', () => {
  type Handlers = HandlersOf<Events>;

  it('a handler of a type that the catalogue does not have does not compile', () => {
    // @ts-expect-error there is no event of that name
    const handlers: Handlers = { Notd: () => Promise.resolve() };
    expect(() => engineHandlers(handlers, { catalogue, topics: ['notes'], logger: silent })).toThrow(
      /Notd; the catalogue/,
    );
  });

  it('a handler that reads a field that the newest version does not have does not compile', () => {
    expectTypeOf<Parameters<NonNullable<Handlers['Noted']>>[0]['event']['data']>().toEqualTypeOf<{
      readonly title: string;
      readonly tags: readonly string[];
    }>();
    const handlers: Handlers = {
      Noted: async ({ event }) => {
        // @ts-expect-error only version 1 had a text
        expect(event.data.text).toBeUndefined();
        return Promise.resolve();
      },
    };
    expect(handlers).toBeDefined();
  });

  it('what a handler emits is checked by its type, and an unknown one does not compile', () => {
    const handlers: Handlers = {
      Noted: async ({ emit }) => {
        // @ts-expect-error there is no event of that name
        await emit({ aggregateType: 'file', aggregateId: '1', eventType: 'Filled', payload: { size: 1 } });
        // @ts-expect-error a size is a number
        await emit({ aggregateType: 'file', aggregateId: '1', eventType: 'Filed', payload: { size: '1' } });
      },
    };
    expect(handlers).toBeDefined();
  });

  it('a handler that forgets to return its promise does not compile', () => {
    // @ts-expect-error it would commit before it is done
    const handlers: Handlers = { Noted: () => undefined };
    expect(handlers).toBeDefined();
  });

  it('a definition without a subscription does not compile', () => {
    // @ts-expect-error there must be one at least
    const empty: ConsumerDefinition<Events> = { ...definition, subscriptions: [] };
    expect(empty.subscriptions).toEqual([]);
  });
});

describe('the handlers of a worker', () => {
  const lines: string[] = [];
  const logger = createLogger({
    name: 'sample',
    level: 'info',
    destination: { write: (line: string) => lines.push(line) },
  });
  const envelope: EventEnvelope = {
    eventId: eventId('e1'),
    source: 'note-taker',
    eventType: 'Noted',
    eventVersion: 2,
    aggregateType: 'note',
    aggregateId: '7',
    aggregateVersion: aggregateVersion(3),
    occurredAt: '2026-01-02T03:04:05.006Z',
    data: { title: 'x', tags: [] },
  };
  const session: unknown = null;
  const context = {
    event: envelope,
    session,
    emit: () => Promise.resolve(),
    signal: new AbortController().signal,
    attempt: 4,
  } as HandlerContext<ClientSession>;

  it('are given the newest version, and a logger that names the event', async () => {
    const handlers: HandlersOf<Events> = {
      Noted: async ({ event, emit, logger: log }) => {
        // @ts-expect-error only version 1 had a text
        expect(event.data.text).toBeUndefined();
        log.info(event.data.title);
        await emit({ aggregateType: 'file', aggregateId: '1', eventType: 'Filed', payload: { size: 1 } });
        // @ts-expect-error a file has a size
        await emit({ aggregateType: 'file', aggregateId: '1', eventType: 'Filed', payload: {} });
      },
    };
    await engineHandlers(handlers, { catalogue, topics: ['notes'], logger })['Noted']?.(context);
    expect(JSON.parse(lines[0] ?? '')).toMatchObject({ msg: 'x', eventId: 'e1', aggregateVersion: 3, attempt: 4 });
  });

  it('that leave a whole topic without any are a warning that names the topic and what would be ignored', () => {
    lines.length = 0;
    engineHandlers({ Noted: () => Promise.resolve() }, { catalogue, topics: ['notes', 'files', 'elsewhere'], logger });
    expect(lines.map((line) => JSON.parse(line) as unknown)).toEqual([
      expect.objectContaining({ level: 'warn', topic: 'files', eventTypes: ['Filed'] }),
      expect.objectContaining({ level: 'warn', topic: 'elsewhere', eventTypes: [] }),
    ]);
  });

  it.each<[string, HandlersOf<Events>, RegExp]>([
    [
      'a type that is not in the catalogue',
      { Lost: () => Promise.resolve() } as HandlersOf<Events>,
      /Lost; the catalogue has Noted, Filed/,
    ],
    [
      'a topic that is not subscribed to',
      { Filed: () => Promise.resolve() },
      /Filed, which travels on files; subscribed to: notes/,
    ],
  ])('are refused for %s, since they could never run', (_name, handlers, message) => {
    expect(() => engineHandlers(handlers, { catalogue, topics: ['notes'], logger })).toThrow(message);
  });
});
