import { openArchive } from '@nightporter/archive';
import { createRetention, type Destination } from '@nightporter/ledger';
import { OUTBOX_COLLECTIONS, registerGroup, type GroupDocument } from '@nightporter/mongo';
import { aggregateVersion, namespace } from '@nightporter/protocol';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeAll, expect, it, vi, type TestContext } from 'vitest';
import { buildPrograms, until } from '../../e2e/programs.js';
import { showFigures } from '../../support/figures.js';
import { startS3Store } from '../../support/s3-store.js';
import { JOURNAL_PROGRAMS, openJournalGroup, untilSettled } from '../support/journal-group.js';
import { openJournalWorld, type JournalWorld } from '../support/journal-world.js';
import { sized } from '../support/size.js';

const EVENTS = sized({ full: 1_500, small: 90 });
const AGGREGATES = sized({ full: 50, small: 6 });
const TRANSACTION_EVENTS = 10;
const DAY_MS = 86_400_000;

const cleanUp: (() => Promise<unknown>)[] = [];

beforeAll(() => {
  buildPrograms(JOURNAL_PROGRAMS);
});
afterEach(async () => {
  vi.unstubAllEnvs();
  for (const undo of cleanUp.splice(0).reverse()) await undo();
});

it('A group from the beginning gets each event once and in order, of which some lie in archive files, some in collections and some in the outbox', async (context) => {
  const folder = await mkdtemp(join(tmpdir(), 'nightporter-prefix-'));
  cleanUp.push(() => rm(folder, { recursive: true, force: true }));
  await startFromArchives(context, { ARCHIVE_FOLDER: folder });
});

it('A group from the beginning gets each event once and in order also where the archive files lie in S3', async (context) => {
  const store = await startS3Store();
  cleanUp.push(() => store.close());
  for (const [name, value] of Object.entries(store.env)) vi.stubEnv(name, value);
  await startFromArchives(context, { ...store.env, ARCHIVE_FOLDER: store.location('prefix') });
  expect(new Set(store.asked.map(({ method }) => method))).toEqual(new Set(['PUT', 'GET']));
});

/** With `place`, the settings by which a process finds the archive. */
async function startFromArchives(
  context: TestContext,
  place: Readonly<Record<string, string>> & { readonly ARCHIVE_FOLDER: string },
): Promise<void> {
  const world = await openJournalWorld();
  cleanUp.push(() => world.close());
  await publishAll(world);
  await backdate(world);
  const files = await retain(world, { kind: 'files', files: await openArchive(place.ARCHIVE_FOLDER) }, 30 * DAY_MS);
  const collections = await retain(world, { kind: 'collections', bucket: 'day' }, 15 * DAY_MS);
  const left = await world.outbox.countDocuments();

  // The broker gives the group only what is sent from now on: nothing.
  const group = await openJournalGroup(world, {
    settings: { ...place, LEDGER_SWEEP_EVERY_MS: '500', LEDGER_LAG_MS: '1000' },
  });
  const startedMs = performance.now();
  await group.startWorker();
  await untilSettled(group, EVENTS, 60_000 + 100 * EVENTS);
  const seconds = ((performance.now() - startedMs) / 1_000).toFixed(1);

  const entries = await group.journal.find({}, { sort: { aggregateId: 1, sequence: 1 } }).toArray();
  showFigures(context, { events: EVENTS, files, collections, outbox: left, applied: entries.length, seconds });
  expect([files, collections, left]).toEqual([EVENTS / 3, EVENTS / 3, EVENTS / 3]);
  expect(new Set(entries.map(({ eventId }) => eventId)).size).toBe(EVENTS);
  expect(entries).toHaveLength(EVENTS);
  expect(entries.filter(({ sequence, version }) => sequence !== version)).toEqual([]);
  expect(await group.parked.countDocuments()).toBe(0);
}

async function publishAll(world: JournalWorld): Promise<void> {
  for (let first = 0; first < EVENTS; first += TRANSACTION_EVENTS) {
    const emissions = Array.from({ length: TRANSACTION_EVENTS }, (_, n) => ({
      aggregateId: `a${(first + n) % AGGREGATES}`,
    }));
    await world.commit(emissions);
  }
  const isPublished = async () => (await world.outbox.countDocuments({ status: 'PUBLISHED' })) === EVENTS;
  await until('all is published', isPublished, 60_000 + 50 * EVENTS);
}

/** By version, a third each forty, twenty and two days ago, so that every aggregate lies in all three places. */
async function backdate({ client, outbox, producer, topic }: JournalWorld): Promise<void> {
  const versions = EVENTS / AGGREGATES;
  const updates = Array.from({ length: versions }, (_, index) => {
    const daysAgo = [40, 20, 2][Math.floor((3 * index) / versions)] ?? 0;
    const publishedAt = new Date(Date.now() - daysAgo * DAY_MS + index);
    return {
      updateMany: { filter: { aggregateVersion: aggregateVersion(index + 1) }, update: { $set: { publishedAt } } },
    };
  });
  await outbox.bulkWrite(updates);
  await registerGroup(client, producer, { group: 'one-that-is-through', topics: [topic] });
  const groups = client.db(producer).collection<GroupDocument>(OUTBOX_COLLECTIONS.groups);
  await groups.updateOne({ _id: 'one-that-is-through' }, { $set: { watermark: new Date() } });
}

async function retain({ client, producer }: JournalWorld, destination: Destination, afterMs: number): Promise<number> {
  const outbox = namespace(`${producer}.${OUTBOX_COLLECTIONS.outbox}`);
  const { rows } = await createRetention({ client, namespace: outbox, destination, afterMs, batchRowsMax: 100 }).run();
  return rows;
}
