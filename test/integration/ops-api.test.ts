import { buildConsole, createOperations } from '@nightporter/console';
import type { Deployment } from '@nightporter/ledger';
import { registerGroup } from '@nightporter/mongo';
import { createLogger } from '@nightporter/runtime';
import { NightporterError, type EventId } from '@nightporter/protocol';
import { MongoClient } from 'mongodb';
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { sharedDatabase } from '../conformance/mongo-database.js';
import { publishedApi } from '../support/openapi.js';
import { sharedStack } from '../support/stack.js';
import { operationsFixture, rowsOf, type OperationsFixture } from './operations.support.js';

const shared = sharedDatabase();
const TOKEN = 'a-token-for-operators';
const LEDGER_TOKEN = 'a-token-for-ledgers-alone';
const ADA = { by: 'ada', reason: 'looked into it' };

let fixture: OperationsFixture;
let app: Awaited<ReturnType<typeof buildConsole>>;

beforeEach(async () => {
  fixture = await operationsFixture(shared);
  app = await consoleOf();
});
afterEach(() => app.close());

function consoleOf(
  known: Partial<Pick<Deployment, 'groups' | 'producers'>> = {},
  broker: Parameters<typeof buildConsole>[0]['broker'] = null,
): ReturnType<typeof buildConsole> {
  return buildConsole({
    broker,
    producers: new Map(),
    operations: createOperations(fixture.client, {
      producers: fixture.deployment.producers,
      relayDatabase: fixture.relayDatabase,
      ...known,
    }),
    liveEveryMs: 250,
    tokens: { ops: TOKEN, ledger: LEDGER_TOKEN },
    logger: createLogger({ name: 'console', level: 'silent' }),
    checks: {},
    bodyBytesMax: 65_536,
    requestsPerMinuteMax: 100_000,
  });
}

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
  const answer = { status: response.statusCode, body: response.json<Record<string, unknown>>() };
  const { 'content-type': contentType = null } = response.headers;
  publishedApi(app).check({ method, url: `/v1${url}` }, { ...answer, contentType: contentType?.toString() ?? null });
  return answer;
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
  });

  it('are answered by the doctor, who asks the broker that the console is told of, or says which setting is missing', async () => {
    const { findings } = (await get('/doctor')).body as { findings: { check: string; text: string }[] };
    expect(findings.filter(({ check }) => check === 'topic')).toMatchObject([
      { severity: 'note', text: expect.stringContaining('ROCKETMQ_ENDPOINTS') },
    ]);
    const asked: string[] = [];
    const refusal = new NightporterError('NP_PREFLIGHT_TOPIC_MISSING', 'There is no such topic. Create it: mqadmin');
    const told = await consoleOf(
      {},
      {
        topic: (topic) => (asked.push(topic), topic === 'missing' ? Promise.reject(refusal) : Promise.resolve()),
        group: ({ topic }) => Promise.resolve(asked.push(`group of ${topic}`)),
      },
    );
    onTestFinished(() => told.close());
    const ofTopics = async (query: string) => {
      const answer = await told.inject({ url: `/v1/doctor${query}`, headers: { authorization: `Bearer ${TOKEN}` } });
      return answer.json<{ findings: { check: string }[] }>().findings.filter(({ check }) => check === 'topic');
    };
    expect(await ofTopics('')).toEqual([]);
    expect(asked.splice(0)).toEqual(['sample-events', 'group of sample-events']);
    expect(await ofTopics('?topics=missing,other')).toMatchObject([{ severity: 'error', mend: 'mqadmin' }]);
    expect(asked).toEqual(['missing', 'other', 'group of sample-events']);
  });

  it('audit some producers and groups only, with what the group has of the others known all the same', async () => {
    const other = await operationsFixture(shared);
    const { client, producer } = fixture;
    await registerGroup(client, producer, { group: other.group, topics: ['sample-events'] });
    const ids = await other.commit('1', 1);
    await other.publish(ids);
    await other.settle(ids);
    const places = {
      producers: [...fixture.deployment.producers, ...other.deployment.producers],
      groups: other.deployment.groups,
    };
    const both = await consoleOf(places);
    onTestFinished(() => both.close());
    const audited = async (query: string) => {
      const headers = { authorization: `Bearer ${TOKEN}` };
      return (await both.inject({ url: `/v1/audit?full=true&lagSeconds=0&${query}`, headers })).json<object>();
    };
    expect(await audited(`producer=${producer}&group=${other.group}`)).toMatchObject({
      producers: [{ producer }],
      groups: [{ group: other.group, producer }],
      differences: [],
    });
    expect(await audited(`group=${other.group},nobody`)).toMatchObject({
      producers: [{ producer }, { producer: other.producer }],
      groups: [{ producer }, { producer: other.producer }],
    });
    expect(await audited(`producer=${producer},nobody`)).toMatchObject({
      status: 400,
      detail: expect.stringContaining(`accepted: ${producer}, ${other.producer}`),
    });
    await fixture.commit('1', 2);
    const limited = await audited(`producer=${producer}&group=${other.group}&graceSeconds=0&limit=1`);
    expect(limited).toMatchObject({ differences: [{}], differencesTotal: 2 });
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

  it('follow events as they are committed, each once, of one type', async () => {
    const url = await app.listen({ host: '127.0.0.1', port: 0 });
    const response = await fetch(`${url}/v1/tail?eventType=SampleHappened&topic=sample-events`, {
      headers: { authorization: `Bearer ${TOKEN}` },
      signal: AbortSignal.timeout(20_000),
    });
    expect(response.headers.get('content-type')).toContain('text/event-stream');
    const ids = [...(await fixture.commit('1', 2))];
    let text = '';
    for await (const chunk of response.body!.pipeThrough(new TextDecoderStream())) {
      // One more after a look that has told of the others.
      if (text === '' && chunk.includes('event: committed')) ids.push(...(await fixture.commit('2', 1)));
      if (text !== '' || chunk.includes('event: committed')) text += chunk;
      if (text.match(/^event: committed$/gm)?.length === 3) break;
    }
    const told = [...text.matchAll(/^data: (.*)$/gm)].map(([, data = '']) => JSON.parse(data) as object);
    expect(told).toMatchObject(ids.toSorted().map((eventId) => ({ eventId, producer: fixture.producer })));
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

  it('decide about all dead letters that a filter finds, after a dry run, on record under one name', async () => {
    const ids = [
      ...(await fixture.commit('1', 1)),
      ...(await fixture.commit('2', 1)),
      ...(await fixture.commit('3', 1)),
    ];
    await fixture.publish(ids);
    for (const id of ids) await fixture.park(id, 'dead');
    const path = `/groups/${fixture.group}/dead-letters`;
    const filter = { eventType: 'SampleHappened', reason: 'no such product' };
    expect(await post(`${path}/retry`, { ...ADA, filter: {} })).toMatchObject({ status: 400 });
    const planned = await post(`${path}/skip`, { ...ADA, filter, limit: 2, dryRun: true });
    expect(planned).toMatchObject({ status: 200, body: { kind: 'planned' } });
    const told = planned.body['deadLetters'] as { eventId: EventId }[];
    expect(told).toHaveLength(2);
    expect((await get('/actions')).body['actions']).toEqual([]);
    expect((await post(`${path}/skip`, { ...ADA, filter, limit: 2 })).status).toBe(400);
    expect((await post(`${path}/skip`, { ...ADA, filter, limit: 2, confirm: 'another' })).status).toBe(400);
    const skipped = await post(`${path}/skip`, { ...ADA, filter, limit: 2, confirm: fixture.group });
    const done = told.map(({ eventId }) => ({ eventId, result: { kind: 'done' } }));
    expect(skipped).toMatchObject({ status: 200, body: { kind: 'acted', results: done } });
    const retried = await post(`${path}/retry`, { ...ADA, filter });
    expect(retried).toMatchObject({ status: 200, body: { kind: 'acted', results: [{ result: { kind: 'done' } }] } });
    expect((await get(path)).body).toEqual({ deadLetters: [] });
    const { bulk } = skipped.body;
    expect((await get('/actions')).body['actions']).toMatchObject([
      { action: 'retry', bulk: retried.body['bulk'] },
      { action: 'skip', by: 'ada', bulk },
      { action: 'skip', by: 'ada', bulk },
    ]);
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
    expect((await get('/relay')).body).toMatchObject({ database: fixture.relayDatabase, pauses: [{ by: 'ada' }] });
    expect(await post('/relay/resume', pause)).toMatchObject({ status: 200, body: { kind: 'done' } });
  });
});

describe('acts on whole groups and outboxes over HTTP', () => {
  it('list every group with each producer, and where it keeps its data', async () => {
    const ids = await fixture.commit('1', 2);
    await fixture.publish(ids);
    await fixture.settle(ids.slice(0, 1));
    const { body } = await get('/groups');
    expect(body).toMatchObject({
      groups: [{ group: fixture.group, producer: fixture.producer, database: fixture.consumer }],
    });
  });

  it('plan a replay without writing anything, and park what the group is missing, on record', async () => {
    const ids = await fixture.commit('1', 3);
    await fixture.publish(ids);
    await fixture.settle(ids.slice(0, 1));
    // A replay leaves the last ten seconds to the sweep.
    await rowsOf(fixture).updateMany({}, { $set: { publishedAt: new Date(Date.now() - 60_000) } });
    const path = `/groups/${fixture.group}/replays`;
    const selection = { aggregates: [fixture.key('1')] };
    expect(await post(`${path}/plan`, selection)).toMatchObject({ status: 200, body: { events: 3, missing: 2 } });
    expect((await get('/status')).body).toMatchObject({ groups: [{ parked: { gap: 0, behind: 0, retry: 0 } }] });
    expect((await post(path, { ...selection, by: 'ada' })).status).toBe(400);
    expect(await post(path, { ...ADA, ...selection })).toMatchObject({ status: 200, body: { parked: 2, known: 1 } });
    expect((await get('/actions')).body['actions']).toMatchObject([
      { action: 'replay', by: 'ada', reason: ADA.reason },
    ]);
    expect((await post('/groups/nobody/replays', { ...ADA, ...selection })).status).toBe(404);
  });

  it('remove a group only with its name once more, on record, and its data only where that is asked for', async () => {
    const ids = await fixture.commit('1', 1);
    await fixture.publish(ids);
    await fixture.settle(ids);
    const path = `/groups/${fixture.group}/remove`;
    expect(await post(path, { ...ADA, confirm: 'another' })).toMatchObject({
      status: 400,
      body: { errors: [{ pointer: '#/confirm' }] },
    });
    const removed = await post(path, { ...ADA, confirm: fixture.group });
    expect(removed).toMatchObject({ status: 200, body: { unregistered: [fixture.producer], deleted: { inbox: 0 } } });
    expect((await get('/groups')).body['groups']).toEqual([]);
    expect((await post(path, { ...ADA, confirm: fixture.group })).status).toBe(404);
    expect((await get('/actions')).body['actions']).toMatchObject([{ action: 'remove-group', by: 'ada' }]);
  });

  it('move old rows out of an outbox only with its name once more, on record, and never past a group', async () => {
    const ids = await fixture.commit('1', 2);
    await fixture.publish(ids);
    const path = `/outboxes/${fixture.producer}/retention`;
    const body = { ...ADA, to: 'delete', afterHours: 0 };
    expect((await post(path, { ...body, confirm: 'orders' })).status).toBe(400);
    const held = await post(path, { ...body, confirm: fixture.producer });
    expect(held).toMatchObject({ status: 200, body: { rows: 0, held: [{ topic: 'sample-events' }] } });
    const forced = await post(path, { ...body, confirm: fixture.producer, force: true });
    expect(forced).toMatchObject({ status: 200, body: { kind: 'completed', rows: 2 } });
    expect((await get('/actions')).body['actions']).toMatchObject([{ action: 'forced-retention', by: 'ada' }, {}]);
    expect((await post('/outboxes/nobody/retention', { ...body, confirm: 'nobody' })).status).toBe(404);
    const files = await post(path, { ...body, to: 'files', confirm: fixture.producer });
    expect(files).toMatchObject({ status: 409, body: { errors: [{ pointer: '#/to' }] } });
  });

  it('read and mend a group whose database is named, since nothing in it leads there yet or it is elsewhere', async () => {
    const [id] = await fixture.commit('1', 1);
    await fixture.publish([id!]);
    await fixture.park(id!, 'dead');
    const elsewhere = new MongoClient(sharedStack().mongodbUri);
    onTestFinished(() => elsewhere.close());
    const own = await consoleOf({ groups: [{ group: 'named', database: fixture.consumer, client: elsewhere }] });
    onTestFinished(() => own.close());
    const headers = { authorization: `Bearer ${TOKEN}` };
    const named = await own.inject({ url: '/v1/groups/named/dead-letters', headers });
    expect([named.statusCode, named.json()]).toEqual([200, { deadLetters: [] }]);
    const found = await own.inject({ url: `/v1/groups/${fixture.group}/dead-letters`, headers });
    expect(found.json()).toMatchObject({ deadLetters: [{ eventId: id! }] });
  });
});
