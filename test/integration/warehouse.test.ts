import { ordersCatalogue } from '@nightporter/contracts';
import { MANIFEST, readManifest, stagedEvent, type SessionPorts } from '@nightporter/warehouse-worker';
import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { sharedDatabase } from '../conformance/mongo-database.js';
import { askAsDocumented } from '../support/warehouse-query.js';
import { codeOf } from './outbox-fixture.js';
import { die, event, Killed, warehouses } from './warehouse.support.js';

const openWarehouse = warehouses(sharedDatabase());

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
  instead: (name: string, content: Uint8Array) => Promise<string>,
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
});
