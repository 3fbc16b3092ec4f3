import { createCatalogue, defineEvent, type OutboxDocument, type OutboxHeadDocument } from '@nightporter/contracts';
import { createRetention, type Destination } from '@nightporter/ledger';
import {
  OUTBOX_COLLECTIONS,
  createArchiveFolder,
  createProducerLedger,
  registerGroup,
  type ArchiveFiles,
} from '@nightporter/mongo';
import { createOutbox } from '@nightporter/outbox';
import { aggregateKey, type EventId } from '@nightporter/protocol';
import { MongoClient } from 'mongodb';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { sharedDatabase } from '../conformance/mongo-database.js';
import {
  TOPIC,
  daysAgo,
  idsOf,
  retentionFixture,
  walk,
  type RetentionFixture,
} from '../integration/retention.support.js';
import { showFigures } from '../support/figures.js';
import { sharedStack } from '../support/stack.js';

/** Business writes, marks of a relay and registrations of groups go on while retention runs. */

const shared = sharedDatabase();
const cleanUp: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const undo of cleanUp.splice(0).reverse()) await undo();
});

const OLD_ROWS = 120;
const AGGREGATES = 6;
const WRITERS = 4;
/** Runs of retention while everything goes on; each finds what has been marked since the last. */
const RUNS = 3;
const REGISTER_EVERY_MS = 50;

describe.each(['delete', 'collections', 'files'] as const)('retention into %s beside business writes', (kind) => {
  it('loses no event, takes no unsettled one, fails no write, and no registration passes it by', async (context) => {
    const own = await retentionFixture(shared.client(), shared.database('load'));
    const old = await own.publish(
      Array.from({ length: OLD_ROWS }, (_, index) => ({ aggregateId: `a${index % AGGREGATES}`, daysAgo: 30 })),
    );
    const unsettled = await own.publish(
      (['PENDING', 'PROCESSING', 'FAILED', 'DEAD'] as const).map((status) => ({
        aggregateId: 'held',
        daysAgo: 30,
        status,
      })),
    );
    await own.group('one', 1);
    const before = (await own.registry())?.revision ?? 0;
    const { client, conflicts } = await watchedClient();
    const { destination, files } = await targetOf(kind);
    const load = startLoad(own);
    const retention = createRetention({ ...retentionOptions(own), client, destination });
    let [rows, batches] = [0, 0];
    for (let run = 0; run < RUNS; run += 1) {
      await load.untilMarked();
      const result = await retention.run();
      expect(result.kind).toBe('completed');
      [rows, batches] = [rows + result.rows, batches + result.batches];
    }
    const { committed, failures, marked, registrations, repeated } = await load.stop();

    showFigures(context, {
      writes: committed.length,
      failed: failures.length,
      repeated,
      retained: rows,
      batches,
      registrations,
      registryConflicts: conflicts(),
    });
    expect(failures).toEqual([]);
    // Old rows all, and of the others such as were marked in time; whatever was not published is there.
    expect(rows).toBeGreaterThan(old.length);
    const left = new Set(await own.left());
    const unpublished = [...idsOf(unsettled), ...committed.filter((id) => !marked.has(id))];
    expect(unpublished.filter((id) => !left.has(id))).toEqual([]);
    const all = [...idsOf([...old, ...unsettled]), ...committed];
    expect(all.filter((id) => left.has(id))).toHaveLength(all.length - rows);
    if (kind !== 'delete') await expectReadable(own, files, [...idsOf(old), ...marked]);
    await expectDense(own, { committed: committed.length, old: old.length + unsettled.length });
    // Every batch and every registration has raised the revision by one: none overtook another unseen.
    expect((await own.registry())?.revision).toBe(before + registrations + batches);
  });
});

function retentionOptions({ outbox }: RetentionFixture) {
  return { namespace: outbox, afterMs: 7 * 86_400_000, batchRowsMax: 20, pauseMs: 1 } as const;
}

async function targetOf(kind: Destination['kind']): Promise<{ destination: Destination; files?: ArchiveFiles }> {
  if (kind === 'delete') return { destination: { kind } };
  if (kind === 'collections') return { destination: { kind, bucket: 'day' } };
  const folder = await mkdtemp(join(tmpdir(), 'nightporter-load-'));
  cleanUp.push(() => rm(folder, { recursive: true, force: true }));
  const files = createArchiveFolder(folder);
  return { destination: { kind, files }, files };
}

/** Counts what retention has lost to others at the registry, and tried again. */
async function watchedClient() {
  const client = new MongoClient(sharedStack().mongodbUri, { monitorCommands: true });
  cleanUp.push(() => client.close());
  let conflicts = 0;
  client.on('commandFailed', ({ commandName, failure }) => {
    if (commandName === 'update' && (failure as { code?: unknown }).code === 112) conflicts += 1;
  });
  await client.connect();
  return { client, conflicts: () => conflicts };
}

/** Writers on the aggregates of the old rows, a relay that marks some of what they write as published long ago, and groups that register. */
function startLoad(own: RetentionFixture) {
  const noted = defineEvent({
    type: 'SampleHappened',
    version: 1,
    aggregateType: 'sample',
    topic: TOPIC,
    schema: z.unknown(),
  });
  const { client, database } = own;
  const outbox = createOutbox({ client, database, source: database, catalogue: createCatalogue([noted]) });
  const committed: EventId[] = [];
  const marked = new Set<EventId>();
  const failures: unknown[] = [];
  const state = { isStopped: false, number: 0, registrations: 0, runs: 0, writes: 0 };
  const noteFailure = (error: unknown): void => {
    failures.push(error);
    state.isStopped = true;
  };
  const write = async (): Promise<void> => {
    const event = {
      aggregateType: 'sample',
      aggregateId: `a${(state.number += 1) % AGGREGATES}`,
      eventType: 'SampleHappened',
    };
    state.writes += 1;
    const { eventId } = await outbox.transaction(({ emit }) => {
      state.runs += 1;
      return emit({ ...event, payload: { number: state.number } });
    });
    committed.push(eventId);
  };
  const rows = client.db(database).collection<OutboxDocument>(OUTBOX_COLLECTIONS.outbox);
  const publishedAt = daysAgo(20);
  const mark = async (): Promise<void> => {
    const next = committed.find((id, index) => index % 2 === 0 && !marked.has(id));
    if (next === undefined) return write();
    const published = { $set: { status: 'PUBLISHED' as const, publishedAt }, $unset: { unsettled: '' as const } };
    // Before the update: retention may take the row at once.
    marked.add(next);
    await rows.updateOne({ _id: next }, published);
  };
  const register = async (): Promise<void> => {
    await registerGroup(client, database, { group: `late-${state.registrations}`, topics: ['another-topic'] });
    state.registrations += 1;
    // Else there would always be one that is open.
    await delay(REGISTER_EVERY_MS);
  };
  const repeatedly = async (work: () => Promise<void>): Promise<void> => {
    try {
      while (!state.isStopped) await work();
    } catch (error) {
      noteFailure(error);
    }
  };
  const running = Promise.all([
    ...Array.from({ length: WRITERS }, () => repeatedly(write)),
    repeatedly(mark),
    repeatedly(register),
  ]);
  return {
    /** Resolves once more has been marked than there was when it was asked. */
    untilMarked: async () => {
      const [enough, end] = [marked.size + 5, performance.now() + 60_000];
      while (marked.size < enough && !state.isStopped && performance.now() < end) await delay(5);
      if (marked.size < enough)
        throw new Error(`${marked.size} rows are marked, not ${enough}`, { cause: failures[0] });
    },
    stop: async () => {
      state.isStopped = true;
      await running;
      return { committed, failures, marked, registrations: state.registrations, repeated: state.runs - state.writes };
    },
  };
}

/** The ledger of the producer tells each of them once, wherever it lies, in the order of publication and version by version. */
async function expectReadable(
  own: RetentionFixture,
  files: ArchiveFiles | undefined,
  ids: readonly EventId[],
): Promise<void> {
  const { client, database } = own;
  const ledger = createProducerLedger({ client, database, ...(files === undefined ? {} : { files }) });
  expect([...(await walk(ledger, 200))].sort()).toEqual([...ids].sort());
}

/** The heads count all events that there ever were: writers and retention do not get into each other's way. */
async function expectDense(
  { client, database }: RetentionFixture,
  { committed, old }: { committed: number; old: number },
): Promise<void> {
  const heads = await client.db(database).collection<OutboxHeadDocument>(OUTBOX_COLLECTIONS.heads).find().toArray();
  expect(heads.reduce((sum, { version }) => sum + version, 0)).toBe(committed + old);
  const rows = await client.db(database).collection<OutboxDocument>(OUTBOX_COLLECTIONS.outbox).find().toArray();
  const places = new Set(rows.map((row) => `${aggregateKey(row)} ${row.aggregateVersion}`));
  expect(places.size).toBe(rows.length);
}
