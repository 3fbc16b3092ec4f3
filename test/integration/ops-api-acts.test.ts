import type { EventId } from '@nightporter/protocol';
import { MongoClient } from 'mongodb';
import { describe, expect, it, onTestFinished } from 'vitest';
import { sharedStack } from '../support/stack.js';
import { rowsOf } from './operations.support.js';
import { ADA, TOKEN, consoleOf, fixture, get, post, statusOf } from './ops-api.support.js';

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
