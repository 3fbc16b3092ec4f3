import { buildConsole, createOperations } from '@nightporter/console';
import { createLogger } from '@nightporter/runtime';
import type { EventId } from '@nightporter/protocol';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { sharedDatabase } from '../conformance/mongo-database.js';
import { operationsFixture, rowsOf, type OperationsFixture } from './operations.support.js';

const shared = sharedDatabase();
const TOKEN = 'a-token-for-operators';
const LEDGER_TOKEN = 'a-token-for-ledgers-alone';
const ADA = { by: 'ada', reason: 'looked into it' };

let fixture: OperationsFixture;
let app: Awaited<ReturnType<typeof buildConsole>>;

beforeEach(async () => {
  fixture = await operationsFixture(shared);
  app = await buildConsole({
    producers: new Map(),
    operations: createOperations(fixture.client, {
      producers: fixture.deployment.producers,
      relayDatabase: fixture.relayDatabase,
    }),
    liveEveryMs: 250,
    tokens: { ops: TOKEN, ledger: LEDGER_TOKEN },
    logger: createLogger({ name: 'console', level: 'silent' }),
    checks: {},
    bodyBytesMax: 65_536,
    requestsPerMinuteMax: 100_000,
  });
});
afterEach(() => app.close());

interface Answer {
  readonly status: number;
  readonly body: Record<string, unknown>;
}

async function ask(method: 'GET' | 'POST', url: string, payload?: object, token = TOKEN): Promise<Answer> {
  const headers = { authorization: `Bearer ${token}` };
  const response = await app.inject({
    method,
    url: `/v1${url}`,
    headers,
    ...(payload === undefined ? {} : { payload }),
  });
  return { status: response.statusCode, body: response.json() };
}

const get = (url: string) => ask('GET', url);
const post = (url: string, payload: object) => ask('POST', url, payload);
const statusOf = async (id: EventId) => (await rowsOf(fixture).findOne({ _id: id }))?.status;

describe('questions over HTTP', () => {
  it('are answered by the ledger: status, search, timeline, history, audit, doctor', async () => {
    const ids = await fixture.commit('1', 3);
    await fixture.publish(ids.slice(0, 2));
    await fixture.settle(ids.slice(0, 1));
    expect((await get('/status')).body).toMatchObject({ outboxes: [{ unsettled: { PENDING: { rows: 1 } } }] });
    const first = await get(`/events?eventType=SampleHappened&limit=2`);
    expect((first.body['events'] as { eventId: string }[]).map(({ eventId }) => eventId)).toEqual([ids[2], ids[1]]);
    const next = await get(`/events?eventType=SampleHappened&limit=2&cursor=${String(first.body['cursor'])}`);
    expect(next.body).toMatchObject({ events: [{ eventId: ids[0] }], cursor: null });
    expect((await get(`/events/${ids[0]!}`)).body).toMatchObject({ kind: 'known', event: { status: 'PUBLISHED' } });
    const history = await get(`/history?aggregate=${encodeURIComponent(fixture.key('1'))}`);
    expect(history.body).toMatchObject({ headVersion: 3, entries: [{ version: 1 }, { version: 2 }, { version: 3 }] });
    expect((await get('/audit?full=true')).body).toMatchObject({ kind: 'completed', isFull: true });
    expect((await get('/doctor')).body['findings']).toBeInstanceOf(Array);
  });

  it('say what there is not, and what was asked wrongly, with the place', async () => {
    expect(await get('/events/nobody')).toMatchObject({
      status: 404,
      body: { type: expect.stringContaining('event-unknown') },
    });
    const wrong = await get('/events?limit=0&status=LOST&unknown=1');
    expect(wrong.status).toBe(400);
    expect((wrong.body['errors'] as { parameter: string }[]).map(({ parameter }) => parameter).sort()).toEqual([
      'limit',
      'status',
      'unknown',
    ]);
    expect(await get('/groups/nobody/dead-letters')).toMatchObject({ status: 404 });
  });

  it('are not for a holder of the ledgers’ token', async () => {
    expect(await ask('GET', '/status', undefined, LEDGER_TOKEN)).toMatchObject({ status: 403 });
    expect(await ask('GET', '/status', undefined, 'another-token-of-somebody')).toMatchObject({ status: 401 });
  });

  it('can be followed live: the same figures, again and again, until the server closes', async () => {
    const url = await app.listen({ host: '127.0.0.1', port: 0 });
    const response = await fetch(`${url}/v1/live`, {
      headers: { authorization: `Bearer ${TOKEN}` },
      signal: AbortSignal.timeout(20_000),
    });
    expect(response.headers.get('content-type')).toContain('text/event-stream');
    let text = '';
    for await (const chunk of response.body!.pipeThrough(new TextDecoderStream())) {
      text += chunk;
      const told = text.match(/^event: status\ndata: (.*)$/gm) ?? [];
      if (told.length === 2) break;
    }
    const [, data = ''] = /^data: (.*)$/m.exec(text) ?? [];
    expect(JSON.parse(data)).toMatchObject({ outboxes: [{ producer: fixture.producer }] });
  });
});

describe('acts over HTTP', () => {
  it('have a dead row tried again or skipped, on record, and only with its id once more', async () => {
    const [retried, skipped] = [...(await fixture.commit('1', 1)), ...(await fixture.commit('2', 1))];
    for (const id of [retried!, skipped!]) await fixture.kill(id);
    expect((await get('/outbox')).body['rows']).toHaveLength(2);
    expect(await post(`/outbox/${retried!}/retry`, ADA)).toMatchObject({ status: 200, body: { kind: 'done' } });
    const unconfirmed = await post(`/outbox/${skipped!}/skip`, { ...ADA, confirm: retried! });
    expect(unconfirmed).toMatchObject({ status: 400, body: { errors: [{ pointer: '#/confirm' }] } });
    expect(await statusOf(skipped!)).toBe('DEAD');
    expect((await post(`/outbox/${skipped!}/skip`, { ...ADA, confirm: skipped! })).status).toBe(200);
    expect((await post(`/outbox/${skipped!}/skip`, { ...ADA, confirm: skipped! })).status).toBe(409);
    expect((await get('/actions')).body['actions']).toMatchObject([
      { action: 'skip-event', by: 'ada' },
      { action: 'retry-event', by: 'ada' },
    ]);
  });

  it('decide about a dead letter on the revision that was seen, and refuse another', async () => {
    const [id] = await fixture.commit('1', 1);
    await fixture.publish([id!]);
    await fixture.park(id!, 'dead');
    const path = `/groups/${fixture.group}/dead-letters`;
    const { deadLetters } = (await get(path)).body as { deadLetters: { eventId: string; revision: number }[] };
    expect(deadLetters).toMatchObject([{ eventId: id! }]);
    const { revision } = deadLetters[0]!;
    expect((await post(`${path}/${id!}/retry`, { ...ADA, revision: revision + 1 })).status).toBe(409);
    const edit = { ...ADA, revision, data: { value: 7 }, confirm: id! };
    expect(await post(`${path}/${id!}/edit`, edit)).toMatchObject({ status: 200, body: { kind: 'done' } });
    expect((await get(`${path}/${id!}`)).status).toBe(404);
  });

  it('need somebody’s name and a reason', async () => {
    const [id] = await fixture.commit('1', 1);
    await fixture.kill(id!);
    expect(await post(`/outbox/${id!}/retry`, { by: 'ada' })).toMatchObject({
      status: 400,
      body: { errors: [{ pointer: '#/reason' }] },
    });
    expect((await post(`/outbox/${id!}/retry`, { by: ' ', reason: 'why' })).status).toBe(400);
    expect(await statusOf(id!)).toBe('DEAD');
  });

  it('pause the relay and resume it, once each', async () => {
    const pause = { ...ADA, topic: 'sample-events' };
    expect(await post('/relay/pause', pause)).toMatchObject({ status: 200, body: { kind: 'done' } });
    expect(await post('/relay/pause', pause)).toMatchObject({ status: 200, body: { kind: 'unchanged' } });
    expect((await get('/status')).body).toMatchObject({ relay: { pauses: [{ by: 'ada' }] } });
    expect(await post('/relay/resume', pause)).toMatchObject({ status: 200, body: { kind: 'done' } });
  });
});
