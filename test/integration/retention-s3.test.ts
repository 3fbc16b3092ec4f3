import { createS3Archive } from '@nightporter/archive-s3';
import { catalogueOf, createProducerLedger, type ArchiveFiles, type ArchivedFile } from '@nightporter/mongo';
import { aggregateKey } from '@nightporter/protocol';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { sharedDatabase } from '../conformance/mongo-database.js';
import { startS3Store, type Fate, type S3Store } from '../support/s3-store.js';
import { codeOf } from './outbox-fixture.js';
import { DAY_MS, idsOf, retentionFixture, walk, type RetentionFixture } from './retention.support.js';

const shared = sharedDatabase();
let store: S3Store;
beforeAll(async () => {
  store = await startS3Store();
  for (const [name, value] of Object.entries(store.env)) vi.stubEnv(name, value);
});
afterEach(() => {
  store.meet(() => 'served');
});
afterAll(async () => {
  vi.unstubAllEnvs();
  await store.close();
});

interface Filed extends RetentionFixture {
  readonly prefix: string;
  readonly files: ArchiveFiles;
}

const rows = (count: number, daysAgo: number) =>
  Array.from({ length: count }, (_, index) => ({ aggregateId: `a${index % 3}`, daysAgo }));

async function fixture(callMs = 20_000): Promise<Filed> {
  const database = shared.database('s3');
  const prefix = `${database}/`;
  const own = await retentionFixture(shared.client(), database);
  await own.group('one', 1);
  return { ...own, prefix, files: createS3Archive({ bucket: 'archive', prefix, isPathStyle: true, callMs }) };
}

const run = ({ files, retention }: Filed, options = {}) =>
  retention({ destination: { kind: 'files', files }, batchRowsMax: 4, ...options }).run();
const ledgerOf = ({ client, database, files }: Filed) => createProducerLedger({ client, database, files });
const archivedOf = ({ client, database }: Filed) =>
  catalogueOf(client.db(database)).find({ state: 'archived' }).toArray() as Promise<readonly ArchivedFile[]>;
const keysOf = async ({ prefix }: Filed) => (await store.keys()).filter((key) => key.startsWith(prefix));

/** What meets the n-th file that is written from now on, and all behind it. */
function meetWrites(from: number, fate: Fate): void {
  let writes = 0;
  store.meet(({ method }) => (method === 'PUT' && (writes += 1) >= from ? fate : 'served'));
}

/** Each event in the outbox or in a file that the catalogue names, and in one of them only. */
async function placesOf(own: Filed): Promise<readonly string[]> {
  return [...(await own.left()), ...(await archivedOf(own)).flatMap(({ eventIds }) => eventIds)].sort();
}

describe('retention into S3', () => {
  it('is read by a group from the beginning, in order and version by version', async () => {
    const own = await fixture();
    const all = await own.publish([...rows(6, 30), ...rows(3, 20), ...rows(2, 2)]);
    expect(await run(own)).toMatchObject({ kind: 'completed', rows: 9, batches: 3 });
    expect(await keysOf(own)).toHaveLength(6);
    const seen = await walk(ledgerOf(own), 2);
    expect([...seen].sort()).toEqual(idsOf(all));
    const places = all.map((row) => ({ aggregate: aggregateKey(row), version: row.aggregateVersion }));
    const answers = await ledgerOf(own).readVersions(places);
    expect(
      answers.map((answer) => (answer.kind === 'published' ? answer.event.envelope.eventId : answer.kind)),
    ).toEqual(all.map(({ _id }) => _id));
  });

  it.each<[string, number]>([
    ['with a file', 3],
    ['between a file and its manifest', 4],
  ])('loses nothing when the store goes away %s, says why, and goes on when it is back', async (_when, at) => {
    const own = await fixture();
    const all = await own.publish(rows(10, 30));
    meetWrites(at, 'reset');
    await expect(run(own)).rejects.toMatchObject({
      code: 'NP_ARCHIVE_FAILED',
      message: expect.stringMatching(
        /^writing .* in the archive s3:\/\/archive\/s3-.*: .*(ECONNRESET|hang up)/,
      ) as string,
    });
    expect(await archivedOf(own)).toHaveLength(1);
    expect(await placesOf(own)).toEqual(idsOf(all));
    store.meet(() => 'reset');
    await expect(run(own)).rejects.toMatchObject({ code: 'NP_ARCHIVE_FAILED' });
    store.meet(() => 'served');
    expect(await run(own)).toMatchObject({ kind: 'completed', rows: 6 });
    expect(await own.left()).toEqual([]);
    expect(await placesOf(own)).toEqual(idsOf(all));
    expect(await keysOf(own)).toHaveLength(6);
    expect([...(await walk(ledgerOf(own), 3))].sort()).toEqual(idsOf(all));
  });

  it('counts a file for nothing that the store takes when its writer has long given it up', async () => {
    const own = await fixture(1_000);
    const all = await own.publish(rows(4, 30));
    meetWrites(1, 'late');
    await expect(run(own)).rejects.toThrow(/no end within 1000 ms/);
    store.meet(() => 'served');
    expect(await run(own)).toMatchObject({ rows: 4 });
    await store.land();
    const [file, ...more] = await archivedOf(own);
    expect(more).toEqual([]);
    expect(
      (await keysOf(own)).filter((key) => key.endsWith('.gz') && key !== `${own.prefix}${file!._id}`),
    ).toHaveLength(1);
    expect(await placesOf(own)).toEqual(idsOf(all));
    expect([...(await walk(ledgerOf(own), 3))].sort()).toEqual(idsOf(all));
  });

  it('never calls a row deleted whose file is missing or out of reach', async () => {
    const own = await fixture();
    const [row] = await own.publish(rows(1, 30));
    await run(own);
    const place = { aggregate: aggregateKey(row!), version: row!.aggregateVersion };
    store.meet(() => 'reset');
    expect(await codeOf(ledgerOf(own).readVersions([place]))).toBe('NP_ARCHIVE_FAILED');
    store.meet(() => 'served');
    expect((await ledgerOf(own).readVersions([place])).map(({ kind }) => kind)).toEqual(['published']);
    await own.files.remove((await archivedOf(own))[0]!._id);
    expect(await codeOf(ledgerOf(own).readVersions([place]))).toBe('NP_ARCHIVE_FAILED');
  });

  it('removes files that have aged out, also those that it could not remove before', async () => {
    const own = await fixture();
    await own.publish(rows(2, 40));
    await own.publish(rows(2, 20));
    await run(own, { batchRowsMax: 2 });
    expect(await keysOf(own)).toHaveLength(4);
    store.meet(({ method }) => (method === 'DELETE' ? 'reset' : 'served'));
    await expect(run(own, { archiveMs: 30 * DAY_MS })).rejects.toMatchObject({ code: 'NP_ARCHIVE_FAILED' });
    store.meet(() => 'served');
    await run(own, { archiveMs: 30 * DAY_MS });
    expect(await keysOf(own)).toHaveLength(2);
  });
});
