import { buildConsole, createOperations } from '@nightporter/console';
import { createRetention, serviceLevel, type GroupServiceLevel } from '@nightporter/ledger';
import { createArchiveFolder, type InboxDocument } from '@nightporter/mongo';
import { createLogger } from '@nightporter/runtime';
import type { EventId } from '@nightporter/protocol';
import { MongoClient } from 'mongodb';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { sharedDatabase } from '../conformance/mongo-database.js';
import { publishedApi } from '../support/openapi.js';
import { sharedStack } from '../support/stack.js';
import { cli } from './cli.support.js';
import { operationsFixture, rowsOf, type OperationsFixture } from './operations.support.js';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;
const shared = sharedDatabase();
let fixture: OperationsFixture;

beforeEach(async () => {
  fixture = await operationsFixture(shared);
  // Else nothing may have been committed before now.
  await fixture.client
    .db(fixture.producer)
    .collection<{ _id: string }>('groups')
    .updateOne({ _id: fixture.group }, [{ $set: { registeredAt: { $subtract: ['$$NOW', 30 * DAY_MS] } } }]);
});

const inbox = () => fixture.client.db(fixture.consumer).collection<InboxDocument>('inbox');

/** Events that were settled so long ago, each so long after its commit. */
async function history(aggregateId: string, times: readonly { agoMs: number; latencyMs: number }[]) {
  const ids = await fixture.commit(aggregateId, times.length);
  await fixture.publish(ids);
  await fixture.settle(ids);
  for (const [index, { agoMs, latencyMs }] of times.entries()) {
    const back = (field: string, ms: number) => ({ $set: { [field]: { $subtract: [`$${field}`, ms] } } });
    await inbox().updateOne({ eventId: ids[index]! }, [back('processedAt', agoMs), back('expireAt', agoMs)]);
    await dated(ids[index]!, latencyMs);
  }
  return ids;
}

async function dated(id: EventId, latencyMs: number): Promise<void> {
  const { processedAt } = (await inbox().findOne({ eventId: id }))!;
  await rowsOf(fixture).updateOne({ _id: id }, { $set: { createdAt: new Date(processedAt.getTime() - latencyMs) } });
}

async function level(request: Parameters<typeof serviceLevel>[1] = {}): Promise<GroupServiceLevel> {
  const { groups } = await serviceLevel(fixture.deployment, { group: fixture.group, ...request });
  return groups[0]!;
}

const counts = ({ windows }: GroupServiceLevel) =>
  windows.map(({ isWhole, notKnown, settled, window, within }) => [window, settled, within, notKnown, isWhole]);

describe('the service level of a group', () => {
  it('is how long its events took from commit to settled, by windows', async () => {
    await history('1', [
      { agoMs: 50 * HOUR_MS, latencyMs: 100 },
      { agoMs: 20 * HOUR_MS, latencyMs: 100 },
      { agoMs: 5 * HOUR_MS, latencyMs: 100 },
      { agoMs: 40 * MINUTE_MS, latencyMs: 9_000 },
      { agoMs: 10 * MINUTE_MS, latencyMs: 5_000 },
      { agoMs: 0, latencyMs: 5_001 },
    ]);
    const found = await level();
    expect(counts(found)).toEqual([
      ['5m', 1, 0, 0, true],
      ['30m', 2, 1, 0, true],
      ['1h', 3, 1, 0, true],
      ['6h', 4, 2, 0, true],
      ['24h', 5, 3, 0, true],
      ['3d', 6, 4, 0, true],
    ]);
    expect(found).toMatchObject({
      verdict: { kind: 'page', long: '1h', short: '5m' },
      sample: { records: 6, completeFrom: null },
      notes: [],
    });
    expect(found.windows.at(-1)).toMatchObject({ p50Ms: 100, p99Ms: 9_000 });
    expect((await level({ thresholdMs: 10_000 })).verdict).toEqual({ kind: 'ok' });
  });

  it('leaves out what was committed before the group was registered, and counts what is in no ledger as not known', async () => {
    const ids = await history('1', [
      { agoMs: 0, latencyMs: 40 * DAY_MS },
      { agoMs: 0, latencyMs: 10 },
      { agoMs: 0, latencyMs: 10 },
    ]);
    await rowsOf(fixture).deleteOne({ _id: ids[2]! });
    expect(counts(await level())[0]).toEqual(['5m', 1, 1, 1, true]);
  });

  it('says where it is between two clocks', async () => {
    const { client, deployment } = fixture;
    await history('1', [{ agoMs: 0, latencyMs: 10 }]);
    const elsewhere = new MongoClient(sharedStack().mongodbUri.replace('127.0.0.1', 'localhost'));
    onTestFinished(() => elsewhere.close());
    const groups = deployment.groups.map((home) => ({ ...home, client: elsewhere }));
    const [apart] = (await serviceLevel({ ...deployment, groups })).groups;
    expect(counts(apart!)[0]).toEqual(['5m', 1, 1, 0, true]);
    expect(apart!.notes).toEqual([expect.stringMatching(/^Group .* its producer .* between two clocks/)]);
    expect(client.options.hosts).not.toEqual(elsewhere.options.hosts);
  });

  it('rests on the newest records, and says from when on they are all of them', async () => {
    await history(
      '1',
      [60, 50, 40, 3, 2, 1].map((minutes) => ({ agoMs: minutes * MINUTE_MS, latencyMs: 10 })),
    );
    const found = await level({ recordsMax: 4 });
    expect(counts(found).slice(0, 3)).toEqual([
      ['5m', 3, 3, 0, true],
      ['30m', 3, 3, 0, true],
      ['1h', 4, 4, 0, false],
    ]);
    expect(found.sample.records).toBe(4);
    const ages = (await inbox().find().sort({ processedAt: -1 }).toArray()).map(({ processedAt }) => processedAt);
    expect(found.sample.completeFrom).toEqual(ages[3]);
  });

  it.each(['collections', 'files'] as const)('finds commits of events that retention has moved to %s', async (kind) => {
    const [id] = await history('1', [{ agoMs: 0, latencyMs: 10 }]);
    await fixture.sweep();
    const folder = await mkdtemp(join(tmpdir(), 'nightporter-'));
    onTestFinished(() => rm(folder, { recursive: true }));
    const files = createArchiveFolder(folder);
    const destination = kind === 'files' ? { kind, files } : { kind, bucket: 'day' as const };
    const run = { client: fixture.client, namespace: fixture.outbox, destination, afterMs: 0, marginMs: 0, pauseMs: 0 };
    expect(await createRetention(run).run()).toMatchObject({ rows: 1 });
    expect(await rowsOf(fixture).findOne({ _id: id! })).toBeNull();
    const [producer] = fixture.deployment.producers;
    const deployment = { ...fixture.deployment, producers: [{ ...producer!, files }] };
    const { groups } = await serviceLevel(deployment);
    expect(counts(groups[0]!)[0]).toEqual(['5m', 1, 1, 0, true]);
    if (kind === 'collections') return;
    const without = await level();
    expect(counts(without)[0]).toEqual(['5m', 0, 0, 1, true]);
    expect(without.notes).toEqual([expect.stringContaining('no archive folder is configured here')]);
  });
});

describe('asked for', () => {
  it('in a terminal, it is a table or JSON, with 1 where somebody is called and 2 for a group that nobody knows', async () => {
    expect(await cli(fixture, ['slo'])).toMatchObject({ code: 0, out: expect.stringContaining('nothing can be said') });
    await history('1', [{ agoMs: 0, latencyMs: 900 }]);
    const well = await cli(fixture, ['slo', fixture.group]);
    expect(well).toMatchObject({ code: 0, err: '' });
    expect(well.out).toContain('99.50 % of the events within 5000 ms of their commit.');
    expect(well.out).toMatch(/\n3d +1 +1 +100\.00 % +900 ms +900 ms +100\.00 % +0\.0 +0\n/);
    const late = await cli(fixture, ['slo', '--threshold-seconds', '0.5', '--json']);
    expect(late.code).toBe(1);
    expect(JSON.parse(late.out)).toMatchObject({
      objective: 0.995,
      thresholdMs: 500,
      groups: [{ group: fixture.group, verdict: { kind: 'page', long: '1h', short: '5m' } }],
    });
    expect(await cli(fixture, ['slo', 'nobody'])).toMatchObject({
      code: 2,
      err: expect.stringContaining(fixture.group),
    });
    expect((await cli(fixture, ['slo', '--threshold-seconds', '0'])).code).toBe(2);
  });

  it('over HTTP, it is the same', async () => {
    await history('1', [{ agoMs: 0, latencyMs: 900 }]);
    const { client, deployment, relayDatabase } = fixture;
    const app = await buildConsole({
      producers: new Map(),
      operations: createOperations(client, { producers: deployment.producers, relayDatabase }),
      liveEveryMs: 1_000,
      tokens: { ops: null, ledger: null },
      logger: createLogger({ name: 'console', level: 'silent' }),
      checks: {},
      bodyBytesMax: 65_536,
      requestsPerMinuteMax: 100_000,
    });
    onTestFinished(() => app.close());
    const get = async (url: string) => {
      const response = await app.inject({ method: 'GET', url });
      const body = response.json<Record<string, unknown>>();
      const contentType = response.headers['content-type']?.toString() ?? null;
      publishedApi(app).check({ method: 'GET', url }, { status: response.statusCode, body, contentType });
      return { status: response.statusCode, body };
    };
    expect(await get(`/v1/slo?group=${fixture.group}`)).toMatchObject({
      status: 200,
      body: { thresholdMs: 5_000, groups: [{ verdict: { kind: 'ok' } }] },
    });
    expect((await get('/v1/slo?thresholdSeconds=0.5')).body).toMatchObject({
      groups: [{ verdict: { kind: 'page', factor: 14.4 } }],
    });
    expect((await get('/v1/slo?group=nobody')).status).toBe(400);
    expect((await get('/v1/slo?thresholdSeconds=0')).status).toBe(400);
  });
});
