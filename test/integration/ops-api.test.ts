import { registerGroup } from '@nightporter/mongo';
import { NightporterError } from '@nightporter/protocol';
import { describe, expect, it, onTestFinished } from 'vitest';
import { operationsFixture } from './operations.support.js';
import { LEDGER_TOKEN, TOKEN, app, ask, consoleOf, fixture, get, shared } from './ops-api.support.js';

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
