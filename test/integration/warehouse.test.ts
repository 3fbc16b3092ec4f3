import { ordersCatalogue, type EventEnvelope, type JsonValue } from '@nightporter/contracts';
import { runTransaction } from '@nightporter/mongo';
import { aggregateVersion, eventId } from '@nightporter/protocol';
import { createLogger } from '@nightporter/runtime';
import {
  createLander,
  createWarehouseFolder,
  createWarehouseStore,
  ensureWarehouseCollections,
  LandingSession,
  MANIFEST,
  readManifest,
  readTable,
  stagedEvent,
  warehouseCollections,
  type SessionPorts,
  type WarehouseCollections,
} from '@nightporter/warehouse-worker';
import { randomUUID } from 'node:crypto';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { sharedDatabase } from '../conformance/mongo-database.js';
import { askAsDocumented } from '../support/warehouse-query.js';
import { codeOf } from './outbox-fixture.js';

const shared = sharedDatabase();
let root: string;
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'nightporter-warehouse-'));
});
afterAll(() => rm(root, { recursive: true, force: true }));

const LEASE_MS = 60_000;

interface Warehouse {
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

async function openWarehouse(): Promise<Warehouse> {
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

function event(change: {
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

class Killed extends Error {}
const die = (): Promise<never> => Promise.reject(new Killed());

/** Moments at which a worker may be killed, as what it never comes to do or to hear of. */
const MOMENTS: readonly (readonly [string, (ports: SessionPorts) => SessionPorts])[] = [
  [
    'before it writes a file',
    ({ folder, ...ports }) => ({ ...ports, folder: { ...folder, write: onData(folder, die) } }),
  ],
  [
    'in the middle of a file',
    ({ folder, ...ports }) => ({
      ...ports,
      folder: {
        ...folder,
        write: onData(folder, async (name, content) => {
          await folder.write(`${name}.partial`, content.slice(0, content.byteLength / 2));
          return die();
        }),
      },
    }),
  ],
  [
    'between the rename of the file and the transaction',
    ({ store, ...ports }) => ({ ...ports, store: { ...store, commit: die } }),
  ],
  [
    'between the transaction and the manifest',
    ({ store, ...ports }) => ({
      ...ports,
      store: {
        ...store,
        commit: async (turn, change) => {
          await store.commit(turn, change);
          return die();
        },
      },
    }),
  ],
];

function onData(
  folder: SessionPorts['folder'],
  instead: (name: string, content: Uint8Array) => Promise<void>,
): SessionPorts['folder']['write'] {
  return (name, content) => (name === MANIFEST ? folder.write(name, content) : instead(name, content));
}

describe('a warehouse', () => {
  it('shows what was landed, each event once and in every table, and stages it no longer', async () => {
    const own = await openWarehouse();
    const ids = [...(await own.stage(30)), ...(await own.stage(5, '2026-12-01'))].sort();
    const session = await own.turn();
    expect(await session.land(20)).toBe(20);
    expect(await session.land(20)).toBe(15);
    expect(await session.land(20)).toBe(0);
    expect(await own.landed()).toEqual(ids);
    expect(await own.collections.staged.countDocuments()).toBe(0);
    const manifest = await readManifest(own.ports.folder);
    expect(manifest?.revision).toBe(2);
    const rowsOf = (day: string, table: string): number =>
      manifest?.files.reduce((sum, file) => sum + (file.day === day && file.table === table ? file.rows : 0), 0) ?? 0;
    expect(['events', 'order_facts'].map((table) => rowsOf('2026-11-30', table))).toEqual([30, 30]);
    expect(['events', 'order_facts'].map((table) => rowsOf('2026-12-01', table))).toEqual([5, 5]);
  });

  it.each(MOMENTS)(
    'has every event once when its worker is killed %s, and nothing is left of that',
    async (_when, killed) => {
      const own = await openWarehouse();
      const before = await own.stage(4);
      await (await own.turn()).land(100);
      const ids = [...before, ...(await own.stage(7))].sort();
      const dying = await own.turn(killed);
      await expect(dying.land(100)).rejects.toThrow(Killed);
      // Whatever a reader sees now, it is whole, and no event is there twice.
      const between = await own.landed();
      expect(new Set(between).size).toBe(between.length);
      expect(between).toEqual(expect.arrayContaining([...before]));
      const next = await own.turn();
      await next.land(100);
      expect(await own.landed()).toEqual(ids);
      expect(await own.collections.staged.countDocuments()).toBe(0);
      expect((await own.files()).length).toBe(await own.collections.files.countDocuments());
    },
  );

  it.each(MOMENTS)('has every event once when its worker is killed %s of a merge', async (_when, killed) => {
    const own = await openWarehouse();
    const limits = { filesMin: 3, rowsMax: 1_000, coldMs: 1_000_000 };
    const ids: string[] = [];
    const session = await own.turn();
    for (let file = 0; file < 3; file += 1) {
      ids.push(...(await own.stage(3)));
      await session.land(100);
    }
    const dying = await own.turn(killed);
    await expect(dying.compact(limits)).rejects.toThrow(Killed);
    expect(await own.landed()).toEqual(ids.sort());
    const next = await own.turn();
    while ((await next.compact(limits)) > 0);
    expect(await own.landed()).toEqual(ids.sort());
    const { files = [] } = (await readManifest(own.ports.folder)) ?? {};
    expect(files.map(({ rows, table }) => [table, rows])).toEqual([
      ['events', 9],
      ['order_facts', 9],
    ]);
    expect((await own.files()).length).toBe(await own.collections.files.countDocuments());
    expect((await next.removeReplaced(0)).length).toBe(6);
    expect((await own.files()).length).toBe(2);
    expect(await own.landed()).toEqual(ids.sort());
  });

  it('takes nothing from a worker whose turn is over, and shows the newest manifest again that it has covered', async () => {
    const own = await openWarehouse();
    const first = await own.stage(3);
    const sleeper = await own.turn();
    await sleeper.land(100);
    const second = await own.stage(4);
    const successor = await own.turn();
    await successor.land(100);
    const third = await own.stage(5);
    expect(await codeOf(sleeper.land(100))).toBe('NP_LEASE_LOST');
    await sleeper.publish();
    expect(await own.landed()).toEqual(first);
    await successor.keepPublished();
    expect(await own.landed()).toEqual([...first, ...second].sort());
    await successor.land(100);
    expect(await own.landed()).toEqual([...first, ...second, ...third].sort());
  });

  it('never names a file that was removed: a commit that arrives after its turn is refused, and one before is seen', async () => {
    const own = await openWarehouse();
    const ids = await own.stage(6);
    const late: (() => Promise<void>)[] = [];
    const unanswered = await own.turn(({ store, ...ports }) => ({
      ...ports,
      store: {
        ...store,
        commit: (turn, change) => {
          late.push(() => store.commit(turn, change));
          return die();
        },
      },
    }));
    await expect(unanswered.land(100)).rejects.toThrow(Killed);
    const next = await own.turn();
    expect(await codeOf(late[0]!())).toBe('NP_LEASE_LOST');
    await next.land(100);
    expect(await own.landed()).toEqual(ids);
  });

  it('removes no file of a newer turn where it was paused between taking the lease and listing the folder', async () => {
    const own = await openWarehouse();
    const ids = await own.stage(6);
    let goOn = (): void => undefined;
    const asked = new Promise<void>((resolve) => (goOn = resolve));
    let landing: Promise<number> = Promise.resolve(0);
    const begunMeanwhile = async (): Promise<void> => {
      let tell = (): void => undefined;
      const written = new Promise<void>((resolve) => (tell = resolve));
      const newer = await own.turn(({ store, ...ports }) => ({
        ...ports,
        store: {
          ...store,
          commit: async (turn, change) => {
            tell();
            await asked;
            await store.commit(turn, change);
          },
        },
      }));
      landing = newer.land(100);
      await Promise.race([written, landing]);
    };
    await own.turn(({ folder, store, ...ports }) => ({
      ...ports,
      folder: { ...folder, list: () => begunMeanwhile().then(() => folder.list()) },
      store: {
        ...store,
        names: async () => {
          const names = await store.names();
          goOn();
          await landing;
          return names;
        },
      },
    }));
    expect(await landing).toBe(6);
    expect(await own.landed()).toEqual(ids);
  });

  it('waits for a landing transaction that is under way before it removes what that has written', async () => {
    const own = await openWarehouse();
    await own.stage(2);
    const session = await own.turn();
    await session.land(100);
    const { lander } = own.collections;
    await lander.updateMany({}, { $set: { expiresAt: new Date(0) } });
    const before = await lander.findOne({ _id: 'lander' });
    let raised: unknown;
    const underWay = runTransaction(shared.client(), 'a landing under way', async ({ session: open }) => {
      const fence = { _id: 'lander', owner: before!.owner, epoch: before!.epoch };
      await lander.updateOne(fence, { $inc: { revision: 1 } }, { session: open });
      // The take-over is refused, or waits, as long as the transaction is open: it may not raise the epoch beside it.
      const taken = own.ports.store.take(randomUUID(), LEASE_MS).then(
        () => 'raised',
        () => 'refused',
      );
      raised = await Promise.race([taken, new Promise((resolve) => setTimeout(resolve, 500, 'waits'))]);
    });
    await underWay;
    expect(raised).not.toBe('raised');
  });

  it('refuses a folder of another database before it changes anything', async () => {
    const [own, other] = [await openWarehouse(), await openWarehouse()];
    const ids = await own.stage(3);
    await (await own.turn()).land(100);
    await other.stage(3);
    const mixed = { ...other.ports, folder: own.ports.folder };
    expect(await codeOf(other.turn(() => mixed))).toBe('NP_WAREHOUSE_FAILED');
    expect(await own.landed()).toEqual(ids);
    await rm(join(own.folder, MANIFEST));
    expect(await codeOf(own.turn())).toBe('NP_WAREHOUSE_FAILED');
  });

  it('tells a reader of a file that is not what was written, and leaves files alone that are none of its own', async () => {
    const own = await openWarehouse();
    await own.stage(3);
    await writeFile(join(own.folder, 'notes.txt'), 'mine');
    await (await own.turn()).land(100);
    const { files = [] } = (await readManifest(own.ports.folder)) ?? {};
    const damaged = join(own.folder, files[0]!.name);
    const content = await readFile(damaged);
    content[20] = content[20]! ^ 1;
    await writeFile(damaged, content);
    expect(await codeOf(own.landed())).toBe('NP_WAREHOUSE_FAILED');
    expect(await readFile(join(own.folder, 'notes.txt'), 'utf8')).toBe('mine');
  });

  it('answers DuckDB as documented, in exact minor units', async () => {
    const own = await openWarehouse();
    const at = '2026-11-30T10:00:00.000Z';
    const total = 9_007_199_254_740_991;
    const line = { productId: 'p', quantity: 1, unitPriceMinor: total };
    const created = { customerId: 'c', currency: 'EUR', lines: [line], totalMinor: total };
    const money = (transactionId: string, amountMinor: number) => ({ transactionId, amountMinor, currency: 'EUR' });
    const events = [
      ...['a', 'b', 'c'].map((aggregateId) =>
        event({ eventType: 'OrderCreated', data: created, occurredAt: at, aggregateId }),
      ),
      event({ eventType: 'OrderPaid', data: money('t1', total), occurredAt: at, aggregateId: 'a' }),
      event({ eventType: 'OrderCompleted', data: {}, occurredAt: at, aggregateId: 'a' }),
      event({ eventType: 'OrderPaid', data: money('t2', total), occurredAt: at, aggregateId: 'b' }),
      event({ eventType: 'OrderCancelled', data: { reason: 'r', wasPaid: true }, occurredAt: at, aggregateId: 'b' }),
      event({
        eventType: 'SurplusPaymentReceived',
        data: { ...money('t3', 7), cause: 'cancelled' },
        occurredAt: at,
        aggregateId: 'b',
      }),
    ];
    await own.collections.staged.insertMany(
      events.map(stagedEvent).map(({ eventId: _id, ...rest }) => ({ _id, ...rest })),
    );
    await (await own.turn()).land(100);
    const answers = await askAsDocumented(own.folder);
    expect(answers.totals).toEqual([
      {
        currency: 'EUR',
        orders: '3',
        completed: '1',
        cancelled: '1',
        ordered_minor: String(3n * BigInt(total)),
        paid_minor: String(2n * BigInt(total)),
        owed_back_minor: String(BigInt(total) + 7n),
      },
    ]);
    expect(answers.events.find((row) => row['event_type'] === 'OrderCreated')).toMatchObject({
      events: '3',
      different: '3',
    });
    expect(ordersCatalogue.events.map(({ type }) => type)).toEqual(
      expect.arrayContaining(answers.events.map((row) => row['event_type'])),
    );
  });

  it('is landed by one worker at a time, and by the other one as soon as the first has stopped', async () => {
    const own = await openWarehouse();
    const logger = createLogger({ name: 'warehouse', level: 'silent' });
    const options = {
      leaseMs: 60_000,
      everyMs: 50,
      eventsMax: 10,
      filesMin: 4,
      rowsMax: 1_000,
      coldMs: 1e6,
      keepReplacedMs: 1e6,
    };
    const clock = {
      now: () => performance.now(),
      after: (ms: number, run: () => void) => clearTimeout.bind(null, setTimeout(run, ms)),
    };
    const landers = [1, 2].map(() =>
      createLander({ ...own.ports, clock, random: Math.random, logger, newOwner: randomUUID }, options),
    );
    const running = landers.map((lander) => lander.run());
    const states = () => landers.map((lander) => (lander.snapshot() as { state: string }).state);
    await expect.poll(states, { timeout: 20_000 }).toContain('landing');
    const ids = [...(await own.stage(25))];
    await expect.poll(() => own.landed(), { timeout: 20_000 }).toEqual(ids.sort());
    const first = states().indexOf('landing');
    expect(states()[1 - first]).toBe('standing-by');
    await landers[first]!.stop();
    ids.push(...(await own.stage(3)));
    await expect.poll(() => own.landed(), { timeout: 20_000 }).toEqual(ids.sort());
    await landers[1 - first]!.stop();
    await Promise.all(running);
  });
});
