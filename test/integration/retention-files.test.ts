import type { OutboxDocument } from '@nightporter/contracts';
import {
  catalogueOf,
  createArchiveFolder,
  createProducerLedger,
  createRelayStores,
  decodeArchive,
  type ArchiveFiles,
  type ArchivedFile,
} from '@nightporter/mongo';
import { aggregateKey, type EventId } from '@nightporter/protocol';
import { mkdtemp, readFile, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { sharedDatabase } from '../conformance/mongo-database.js';
import { codeOf } from './outbox-fixture.js';
import { DAY_MS, TOPIC, idsOf, retentionFixture, type RetentionFixture, walk } from './retention.support.js';

const shared = sharedDatabase();
let root: string;
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'nightporter-archive-'));
});
afterAll(() => rm(root, { recursive: true, force: true }));

interface Filed extends RetentionFixture {
  readonly folder: string;
  readonly files: ArchiveFiles;
  readonly catalogue: () => Promise<readonly ArchivedFile[]>;
  readonly names: () => Promise<readonly string[]>;
}

async function fixture(): Promise<Filed> {
  const own = await retentionFixture(shared.client(), shared.database('files'));
  const folder = await mkdtemp(join(root, 'archive-'));
  const catalogue = catalogueOf(own.client.db(own.database));
  return {
    ...own,
    folder,
    files: createArchiveFolder(folder),
    catalogue: () => catalogue.find().sort({ from: 1 }).toArray() as Promise<readonly ArchivedFile[]>,
    async names() {
      const entries = await readdir(folder, { recursive: true, withFileTypes: true });
      return entries.filter((entry) => entry.isFile()).map(({ name }) => name);
    },
  };
}

const rows = (count: number, daysAgo: number) =>
  Array.from({ length: count }, (_, index) => ({ aggregateId: `a${index % 3}`, daysAgo }));
const run = (own: Filed, files: ArchiveFiles = own.files, options = {}) =>
  own.retention({ destination: { kind: 'files', files }, batchRowsMax: 4, ...options }).run();

/** What the files hold that the catalogue names, each of them with its manifest. */
async function archived({ catalogue, folder }: Filed): Promise<readonly OutboxDocument[]> {
  const documents: OutboxDocument[] = [];
  for (const { _id: name, bytes, rows: count, sha256 } of await catalogue()) {
    const content = await readFile(join(folder, name));
    const manifest: unknown = JSON.parse(
      await readFile(join(folder, name.replace('.ndjson.gz', '.manifest.json')), 'utf8'),
    );
    expect(manifest).toMatchObject({ format: 'nightporter-archive-1', file: name, rows: count, bytes, sha256 });
    documents.push(...(await decodeArchive({ name, content, sha256 })));
  }
  return documents;
}

/** Fails, as a process that dies does, at the n-th call of a method. */
function dying(files: ArchiveFiles, method: keyof ArchiveFiles, at: number): ArchiveFiles {
  let calls = 0;
  const died = (name: keyof ArchiveFiles): boolean => name === method && (calls += 1) >= at;
  return {
    write: (name, content) => (died('write') ? Promise.reject(new Error('killed')) : files.write(name, content)),
    read: (name) => files.read(name),
    remove: (name) => (died('remove') ? Promise.reject(new Error('killed')) : files.remove(name)),
  };
}

describe('an archive of files', () => {
  it('gets what leaves the outbox, each row once and exactly as it was', async () => {
    const own = await fixture();
    const old = await own.publish([...rows(6, 30), ...rows(3, 20)]);
    const young = await own.publish(rows(2, 2));
    await own.group('one', 1);
    expect(await run(own)).toMatchObject({ kind: 'completed', rows: 9, batches: 3 });
    expect(await own.left()).toEqual(idsOf(young));
    const found = await archived(own);
    expect(found.map(({ _id }) => _id).sort()).toEqual(idsOf(old));
    const byId = new Map(found.map((document) => [document._id, document]));
    for (const document of old) expect(byId.get(document._id)).toEqual(document);
    expect(await own.names()).toHaveLength(6);
    expect((await own.registry())?.deletedTo).toBeUndefined();
  });

  it.each([
    ['before the file', 'write', 1],
    ['between the file and its manifest', 'write', 2],
    ['before the second file, when the first is through', 'write', 3],
  ] as const)('loses and doubles nothing when the process dies %s', async (_name, method, at) => {
    const own = await fixture();
    const all = await own.publish(rows(7, 30));
    await own.group('one', 1);
    await expect(run(own, dying(own.files, method, at))).rejects.toThrow('killed');
    const between = [...(await own.left()), ...(await archivedSoFar(own))];
    expect(between.sort()).toEqual(idsOf(all));
    expect(await run(own)).toMatchObject({ kind: 'completed' });
    expect(await own.left()).toEqual([]);
    expect((await archived(own)).map(({ _id }) => _id).sort()).toEqual(idsOf(all));
    expect(await own.names()).toHaveLength(2 * (await own.catalogue()).length);
  });

  it('loses and doubles nothing when a run dies behind the file, and another one wakes later', async () => {
    const own = await fixture();
    const all = await own.publish(rows(4, 30));
    await own.group('one', 1);
    // The first writes its files and falls asleep right before its transaction; the second is through when it wakes.
    let woken: Awaited<ReturnType<typeof run>> | null = null;
    const sleeper: ArchiveFiles = {
      ...own.files,
      async write(name, content) {
        await own.files.write(name, content);
        if (name.endsWith('.manifest.json')) woken = await run(own);
      },
    };
    expect(await run(own, sleeper)).toMatchObject({ rows: 0 });
    expect(woken).toMatchObject({ rows: 4 });
    expect((await archived(own)).map(({ _id }) => _id).sort()).toEqual(idsOf(all));
    expect(await own.names()).toHaveLength(2);
  });

  const database = ({ client, database: name }: Filed) => client.db(name);
  it.each<[string, (own: Filed, row: OutboxDocument) => Promise<unknown>]>([
    [
      'it changes',
      (own, { _id }) =>
        database(own)
          .collection<OutboxDocument>('outbox')
          .updateOne({ _id }, { $inc: { revision: 1 } }),
    ],
    ['a group registers that begins before it', (own) => own.group('late', null)],
    ['another run clears its file away', (own) => catalogueOf(database(own)).deleteMany({ state: 'writing' })],
  ])('leaves a row in the outbox when, while its file is written, %s', async (_what, happens) => {
    const own = await fixture();
    const [row] = await own.publish(rows(1, 30));
    await own.group('one', 1);
    const meanwhile: ArchiveFiles = {
      ...own.files,
      async write(name, content) {
        await happens(own, row!);
        await own.files.write(name, content);
      },
    };
    expect(await run(own, meanwhile)).toMatchObject({ rows: 0 });
    expect(await own.left()).toEqual([row!._id]);
    expect(await own.names()).toEqual([]);
    expect(await own.catalogue()).toEqual([]);
  });

  it('is read by the relay and, in the order of publication and version by version, by a group from the beginning', async () => {
    const own = await fixture();
    const old = await own.publish([...rows(3, 40), ...rows(4, 30), ...rows(2, 20)]);
    const young = await own.publish(rows(2, 2));
    await own.group('one', 1);
    await run(own);
    const { reader } = createRelayStores({ client: own.client, database: 'unused', namespaces: [own.outbox] });
    const reference = { namespace: own.outbox, eventId: old[0]!._id };
    expect((await reader.lookUp([reference])).get(reference.eventId)).toBe('archived');
    const ledger = createProducerLedger({ client: own.client, database: own.database, files: own.files });
    const seen = await walk(ledger, 2);
    expect([...seen].sort()).toEqual(idsOf([...old, ...young]));
    const days = new Map([...old, ...young].map(({ _id, publishedAt }) => [_id, publishedAt!.getTime()]));
    const moments = seen.map((id) => days.get(id)!);
    expect(moments).toEqual([...moments].sort((left, right) => left - right));
    const places = old.map((row) => ({ aggregate: aggregateKey(row), version: row.aggregateVersion }));
    const answers = await ledger.readVersions(places);
    expect(
      answers.map((answer) => (answer.kind === 'published' ? answer.event.envelope.eventId : answer.kind)),
    ).toEqual(old.map(({ _id }) => _id));
  });

  it('never calls a row deleted whose file is damaged, missing or out of reach', async () => {
    const own = await fixture();
    const [row] = await own.publish(rows(1, 30));
    await own.group('one', 1);
    await run(own);
    const { client, database, files } = own;
    const place = { aggregate: aggregateKey(row!), version: row!.aggregateVersion };
    const path = join(own.folder, (await own.catalogue())[0]!._id);
    expect(await codeOf(createProducerLedger({ client, database }).readVersions([place]))).toBe('NP_ARCHIVE_FAILED');
    const content = await readFile(path);
    await writeFile(path, Buffer.concat([content.subarray(0, -1), Buffer.from([content.at(-1)! ^ 1])]));
    const ledger = createProducerLedger({ client, database, files });
    expect(await codeOf(ledger.readVersions([place]))).toBe('NP_ARCHIVE_FAILED');
    await rm(path);
    expect(await codeOf(ledger.readVersions([place]))).toBe('NP_ARCHIVE_FAILED');
    await writeFile(path, content);
    expect((await ledger.readVersions([place])).map(({ kind }) => kind)).toEqual(['published']);
  });

  it('removes files once they are old enough and every group of their topics has passed them, also after a crash', async () => {
    const own = await fixture();
    const [gone] = await own.publish(rows(2, 40));
    await own.publish(rows(2, 20));
    await own.group('one', 1);
    await run(own, own.files, { batchRowsMax: 2 });
    await own.group('behind', null);
    const options = { archiveMs: 30 * DAY_MS };
    const held = await run(own, own.files, options);
    expect(held).toMatchObject({ dropped: [], heldArchives: [{ topic: TOPIC, because: { group: 'behind' } }] });
    await own.client.db(own.database).collection<{ _id: string }>('groups').deleteOne({ _id: 'behind' });
    await expect(run(own, dying(own.files, 'remove', 1), options)).rejects.toThrow('killed');
    const place = { aggregate: aggregateKey(gone!), version: gone!.aggregateVersion };
    const { client, database, files } = own;
    const ledger = createProducerLedger({ client, database, files });
    expect(await ledger.readVersions([place])).toEqual([{ kind: 'deleted' }]);
    await run(own, own.files, options);
    expect(await own.names()).toHaveLength(2);
    expect(await own.catalogue()).toMatchObject([{ state: 'archived', rows: 2 }]);
    expect((await own.registry())?.deletedTo?.[TOPIC]).toEqual(gone!.publishedAt);
  });
});

async function archivedSoFar({ catalogue }: Filed): Promise<readonly EventId[]> {
  return (await catalogue())
    .filter(({ state }) => (state as string) === 'archived')
    .flatMap(({ eventIds }) => eventIds);
}
