import type { EventEnvelope, JsonValue } from '@nightporter/contracts';
import { aggregateVersion, eventId } from '@nightporter/protocol';
import {
  createWarehouseFolder,
  createWarehouseStore,
  ensureWarehouseCollections,
  LandingSession,
  MANIFEST,
  readTable,
  stagedEvent,
  warehouseCollections,
  type SessionPorts,
  type WarehouseCollections,
} from '@nightporter/warehouse-worker';
import { randomUUID } from 'node:crypto';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll } from 'vitest';
import type { SharedDatabase } from '../conformance/mongo-database.js';

export const LEASE_MS = 60_000;

/** A warehouse as its worker, and as its readers, have it. */
export interface Warehouse {
  readonly folder: string;
  readonly ports: SessionPorts;
  readonly collections: WarehouseCollections;
  /** Puts events down for landing, as a handler does. Returns their ids. */
  stage(count: number, day?: string): Promise<readonly string[]>;
  /** A turn of an owner of its own, as a worker begins it; `through` stands between it and the world. */
  turn(through?: (ports: SessionPorts) => SessionPorts): Promise<LandingSession>;
  /** The ids of the events that readers see, sorted; each as often as it is there. */
  landed(): Promise<readonly string[]>;
  files(): Promise<readonly string[]>;
}

/** Opens warehouses for the tests of a file, each on a database and in a folder of its own; the folders go when the tests are through. */
export function warehouses(shared: SharedDatabase): () => Promise<Warehouse> {
  let root: string;
  beforeAll(async () => {
    root = await mkdtemp(join(tmpdir(), 'nightporter-warehouse-'));
  });
  afterAll(() => rm(root, { recursive: true, force: true }));
  return () => openWarehouse(shared, root);
}

async function openWarehouse(shared: SharedDatabase, root: string): Promise<Warehouse> {
  const client = shared.client();
  const database = shared.database('warehouse');
  await ensureWarehouseCollections(client, database);
  const collections = warehouseCollections(client.db(database));
  const folder = await mkdtemp(join(root, 'folder-'));
  const store = createWarehouseStore(client, database);
  const ports: SessionPorts = { store, folder: createWarehouseFolder(folder), newId: randomUUID };
  return {
    folder,
    ports,
    collections,
    async stage(count, day = '2026-11-30') {
      const events = Array.from({ length: count }, (_, index) =>
        completed(`${day}T10:00:00.${String(index).padStart(3, '0')}Z`),
      );
      await collections.staged.insertMany(events.map(({ eventId: _id, ...event }) => ({ _id, ...event })));
      return events.map((event) => event.eventId).sort();
    },
    async turn(through = (same) => same) {
      // As when the one before has died and its lease has run out.
      await collections.lander.updateMany({}, { $set: { expiresAt: new Date(0) } });
      const turn = await store.take(randomUUID(), LEASE_MS);
      if (turn === null) throw new Error('the lease is not free');
      return (await LandingSession.open(through(ports), turn)).session;
    },
    async landed() {
      const ids: unknown[] = [];
      for await (const rows of readTable(folder, 'events')) ids.push(...rows.map((row) => row['event_id']));
      return ids.map(String).sort();
    },
    async files() {
      const entries = await readdir(folder, { recursive: true, withFileTypes: true });
      return entries.filter((entry) => entry.isFile() && entry.name !== MANIFEST).map(({ name }) => name);
    },
  };
}

function completed(occurredAt: string) {
  return stagedEvent(event({ eventType: 'OrderCompleted', data: {}, occurredAt }));
}

export function event(change: {
  eventType: string;
  data: JsonValue;
  occurredAt: string;
  aggregateId?: string;
}): EventEnvelope {
  return {
    eventId: eventId(randomUUID()),
    source: 'orders',
    eventVersion: 1,
    aggregateType: 'order',
    aggregateId: 'o1',
    aggregateVersion: aggregateVersion(1),
    ...change,
  };
}

/** What ends a worker in the middle of its work. */
export class Killed extends Error {}
export const die = (): Promise<never> => Promise.reject(new Killed());
