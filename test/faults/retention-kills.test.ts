import { openArchive } from '@nightporter/archive';
import type { OutboxDocument } from '@nightporter/contracts';
import type { MongoServer } from '@nightporter/embedded';
import type { Destination } from '@nightporter/ledger';
import {
  DATA_SUFFIX,
  MANIFEST_SUFFIX,
  bucketNamed,
  catalogueOf,
  connectMongo,
  createProducerLedger,
  decodeArchive,
  type ArchiveFiles,
} from '@nightporter/mongo';
import { aggregateKey, type EventId } from '@nightporter/protocol';
import { Binary, type MongoClient } from 'mongodb';
import { fork } from 'node:child_process';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { Program, buildPrograms, builtFile } from '../e2e/programs.js';
import { startOwnMongo } from '../integration/mongo-own-server.js';
import { idsOf, retentionFixture, walk, type RetentionFixture } from '../integration/retention.support.js';
import { JOURNAL_PROGRAMS } from '../proof/support/journal-group.js';
import { startS3Store } from '../support/s3-store.js';
import { uniqueName } from '../support/stack.js';

/** SIGKILL of the process that retains, at points of its way that it says itself that it has reached. */

/** A server of their own: what the killed leave open there is nobody else's trouble. */
let server: MongoServer;
let client: MongoClient;
const cleanUp: (() => Promise<unknown>)[] = [];

beforeAll(async () => {
  buildPrograms(JOURNAL_PROGRAMS);
  server = await startOwnMongo();
  client = await connectMongo({ uri: server.uri });
});
afterAll(async () => {
  await client.close();
  await server.stop();
});
afterEach(async () => {
  vi.unstubAllEnvs();
  for (const undo of cleanUp.splice(0).reverse()) await undo();
});

const BATCH_ROWS = 4;
const OLD_ROWS = 10;
const FROZEN_WITHIN_MS = 60_000;

/** Each in the second of three batches, so that one has been through. */
const OF_COLLECTIONS = [
  ['before a batch is archived', 'before insert outbox_archive_ 2'],
  ['between archive and delete', 'after insert outbox_archive_ 2'],
  ['behind the delete', 'after delete outbox 2'],
  ['before the commit', 'before commitTransaction 2'],
  ['when the commit is through and its answer unread', 'after commitTransaction 2'],
] as const;

const OF_FILES = [
  ['when the catalogue says that a file is being written', 'after insert archive_files 2'],
  ['between a file and its manifest', 'after write 3'],
  ['between archive and delete', 'after write 4'],
  ['behind the delete', 'after delete outbox 2'],
  ['before the commit', 'before commitTransaction 2'],
  ['when the commit is through and its answer unread', 'after commitTransaction 2'],
] as const;

/** The others differ only in what the database does. */
const OF_S3 = OF_FILES.filter(([when]) => when.startsWith('between'));

describe('a process that is killed while it moves rows', () => {
  it.each(OF_COLLECTIONS)(
    'to collections, %s, leaves every event in one place, and another ends its work',
    async (_when, point) => {
      const own = await withRows();
      const session = await killAt(point, own);
      await expectAllReadable(own);
      await endTransaction(session);
      const destination: Destination = { kind: 'collections', bucket: 'day' };
      expect(await own.retention({ destination, batchRowsMax: BATCH_ROWS }).run()).toMatchObject({ kind: 'completed' });
      expect(await own.left()).toEqual(idsOf(own.young));
      expect((await inCollections(own)).sort()).toEqual(idsOf(own.old));
      await expectAllReadable(own);
    },
  );

  it.each(OF_FILES)(
    'to files, %s, leaves every event in one place, and another ends its work',
    async (_when, point) => {
      const own = await withRows();
      await expectOnePlace(own, point, await folderPlace());
    },
  );

  it.each(OF_S3)('to S3, %s, leaves every event in one place, and another ends its work', async (_when, point) => {
    const own = await withRows();
    await expectOnePlace(own, point, await s3Place());
  });
});

interface Place {
  readonly location: string;
  /** What a process needs in its environment to find it. */
  readonly env: Readonly<Record<string, string>>;
  readonly files: ArchiveFiles;
  readonly names: () => Promise<readonly string[]>;
}

async function folderPlace(): Promise<Place> {
  const folder = await mkdtemp(join(tmpdir(), 'nightporter-kills-'));
  cleanUp.push(() => rm(folder, { recursive: true, force: true }));
  const names = async () => {
    const entries = await readdir(folder, { recursive: true, withFileTypes: true });
    return entries
      .filter((one) => one.isFile())
      .map(({ name, parentPath }) => join(relative(folder, parentPath), name));
  };
  return { location: folder, env: {}, files: await openArchive(folder), names };
}

async function s3Place(): Promise<Place> {
  const store = await startS3Store();
  cleanUp.push(() => store.close());
  for (const [name, value] of Object.entries(store.env)) vi.stubEnv(name, value);
  const location = store.location();
  return { location, env: store.env, files: await openArchive(location), names: store.keys };
}

async function expectOnePlace(own: Rows, point: string, place: Place): Promise<void> {
  const { files } = place;
  const session = await killAt(point, own, place);
  await expectAllReadable(own, files);
  await endTransaction(session);
  const destination: Destination = { kind: 'files', files };
  expect(await own.retention({ destination, batchRowsMax: BATCH_ROWS }).run()).toMatchObject({ kind: 'completed' });
  expect(await own.left()).toEqual(idsOf(own.young));
  expect((await inFiles(own, place)).sort()).toEqual(idsOf(own.old));
  await expectAllReadable(own, files);
}

interface Rows extends RetentionFixture {
  readonly old: readonly OutboxDocument[];
  readonly young: readonly OutboxDocument[];
}

async function withRows(): Promise<Rows> {
  const own = await retentionFixture(client, uniqueName('kills'));
  const old = await own.publish(
    Array.from({ length: OLD_ROWS }, (_, index) => ({ aggregateId: `a${index % 3}`, daysAgo: 30 })),
  );
  const young = await own.publish([{ aggregateId: 'a0', daysAgo: 2 }]);
  await own.group('one', 1);
  return { ...own, old, young };
}

/** The session of its last transaction, or `none`. */
async function killAt(point: string, { outbox }: Rows, place?: Place): Promise<string> {
  const env = {
    ...place?.env,
    PATH: process.env['PATH'],
    MONGODB_URI: server.uri,
    OUTBOX: outbox,
    ARCHIVE: place?.location ?? '',
    BATCH_ROWS: String(BATCH_ROWS),
    FREEZE_AT: point,
  };
  const file = builtFile(`${JOURNAL_PROGRAMS}/dist/retention-worker.js`);
  const worker = new Program(fork(file, [], { env, stdio: ['ignore', 'pipe', 'pipe', 'ipc'], execArgv: [] }));
  cleanUp.push(() => worker.destroy());
  const [, session = ''] = await worker.output(/^frozen in session (.+)$/m, FROZEN_WITHIN_MS);
  worker.signal('SIGKILL');
  expect((await worker.ended).exit).toBe('SIGKILL');
  return session;
}

/** What the server would do by itself after a minute: for so long a transaction may be open, and retention waits longer than that. */
async function endTransaction(session: string): Promise<void> {
  if (session === 'none') return;
  await client.db('admin').command({ killSessions: [{ id: Binary.createFromBase64(session, Binary.SUBTYPE_UUID) }] });
}

/** As a group from the beginning reads: each once, and each version in its place. */
async function expectAllReadable({ database, old, young }: Rows, files?: ArchiveFiles): Promise<void> {
  const ledger = createProducerLedger({ client, database, ...(files && { files }) });
  const all = [...old, ...young];
  expect([...(await walk(ledger, 3))].sort()).toEqual(idsOf(all));
  const answers = await ledger.readVersions(
    all.map((row) => ({ aggregate: aggregateKey(row), version: row.aggregateVersion })),
  );
  const told = answers.map((answer) => (answer.kind === 'published' ? answer.event.envelope.eventId : answer.kind));
  expect(told).toEqual(all.map(({ _id }) => _id));
}

async function inCollections({ database }: Rows): Promise<EventId[]> {
  const own = client.db(database);
  const names = (await own.listCollections({}, { nameOnly: true }).toArray()).map(({ name }) => name);
  const buckets = names.filter((name) => bucketNamed(name) !== null);
  const found = await Promise.all(buckets.map((name) => own.collection<OutboxDocument>(name).find().toArray()));
  return found.flat().map(({ _id }) => _id);
}

/** What the place holds: files that the catalogue names, each as it says, each with its manifest, and nothing else. */
async function inFiles({ database }: Rows, { files, names }: Place): Promise<EventId[]> {
  const catalogue = await catalogueOf(client.db(database)).find().toArray();
  const found: EventId[] = [];
  const expected: string[] = [];
  for (const entry of catalogue) {
    if (entry.state !== 'archived') throw new Error(`${entry._id} is ${entry.state}`);
    const { _id: file, bytes, rows, sha256 } = entry;
    const manifestFile = file.replace(DATA_SUFFIX, MANIFEST_SUFFIX);
    expected.push(file, manifestFile);
    const manifest: unknown = JSON.parse(Buffer.from((await files.read(manifestFile)) ?? []).toString());
    expect(manifest).toMatchObject({ format: 'nightporter-archive-1', file, rows, bytes, sha256 });
    const content = (await files.read(file)) ?? new Uint8Array();
    found.push(...(await decodeArchive({ name: file, content, sha256 })).map(({ _id }) => _id));
  }
  expect([...(await names())].sort()).toEqual(expected.sort());
  return found;
}
