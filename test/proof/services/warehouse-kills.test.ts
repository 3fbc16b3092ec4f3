import { setTimeout as delay } from 'node:timers/promises';
import { fork } from 'node:child_process';
import { ordersCatalogue } from '@nightporter/contracts';
import { createOutbox, type Outbox } from '@nightporter/outbox';
import { readTable, warehouseCollections } from '@nightporter/warehouse-worker';
import { readdir } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { showFigures } from '../../support/figures.js';
import { buildPrograms, builtFile, Program, until, untilReady } from '../../e2e/programs.js';
import { seeded, seedOfRun } from '../support/seeded.js';
import { openShopWorld, type ShopWorld } from '../support/shop-world.js';
import { sized } from '../support/size.js';

const PROGRAMS = 'test/proof/support/programs';
const ROUND = 24;
const RANDOM_KILLS = sized({ full: 20, small: 2 });

/** What the worker is doing when it ends itself, and how far it is. */
const MOMENTS = sized({
  full: [
    { DIE_IN: 'landing', DIE_AT: 'half-file' },
    { DIE_IN: 'landing', DIE_AT: 'renamed' },
    { DIE_IN: 'landing', DIE_AT: 'committed' },
    { DIE_IN: 'landing', DIE_AT: 'published' },
    { DIE_IN: 'merge', DIE_AT: 'half-file' },
    { DIE_IN: 'merge', DIE_AT: 'renamed' },
    { DIE_IN: 'merge', DIE_AT: 'committed' },
  ],
  small: [
    { DIE_IN: 'landing', DIE_AT: 'half-file' },
    { DIE_IN: 'landing', DIE_AT: 'renamed' },
    { DIE_IN: 'landing', DIE_AT: 'committed' },
    { DIE_IN: 'merge', DIE_AT: 'renamed' },
  ],
});

let world: ShopWorld;
let outbox: Outbox;
const committed: string[] = [];

beforeAll(async () => {
  buildPrograms(PROGRAMS);
  world = await openShopWorld({ stock: new Map(), workers: ['warehouse-worker'] });
  outbox = createOutbox({ client: world.client, database: 'orders', source: 'orders', catalogue: ordersCatalogue });
  await world.start('relay');
});
afterAll(() => world.close());

function startWorker(settings: Readonly<Record<string, string>>): Program {
  const file = builtFile(`${PROGRAMS}/dist/warehouse-worker.js`);
  const env = {
    PATH: process.env['PATH'],
    ...world.settingsOf('warehouse-worker'),
    PORT: '0',
    LANDER_LEASE_MS: '1000',
    ...settings,
  };
  return world.adopt(new Program(fork(file, [], { env, stdio: ['ignore', 'pipe', 'pipe', 'ipc'], execArgv: [] })));
}

async function commitEvents(count: number): Promise<void> {
  for (let index = 0; index < count; index += 1) {
    const { eventId } = await outbox.transaction(({ emit }) =>
      emit({
        aggregateType: 'order',
        aggregateId: `order ${committed.length % 7}`,
        eventType: 'OrderCancelled',
        payload: { reason: `reason ${index}`, wasPaid: false },
      }),
    );
    committed.push(eventId);
  }
}

/** The ids that readers see, each as often as it is there. Whatever they read is whole. */
async function seen(): Promise<readonly string[]> {
  const ids: string[] = [];
  for await (const rows of readTable(world.warehouseFolder, 'events'))
    ids.push(...rows.map((row) => String(row['event_id'])));
  return ids.sort();
}

async function filesBesideTheManifest(): Promise<readonly string[]> {
  const entries = await readdir(world.warehouseFolder, { recursive: true, withFileTypes: true });
  return entries.filter((entry) => entry.isFile() && entry.name.includes('.parquet')).map(({ name }) => name);
}

describe('a warehouse-worker that is killed', () => {
  it.for(MOMENTS)('$DIE_AT in a $DIE_IN shows nothing twice and nothing in half', async (moment, context) => {
    const worker = startWorker(moment);
    // Bit by bit, so that there are files to merge.
    for (let part = 0; part < 4 && worker.isRunning; part += 1) {
      await commitEvents(ROUND / 4);
      const landed = committed.length;
      await until(
        'the events are landed, or the worker has ended',
        async () => !worker.isRunning || (await seen()).length === landed,
        90_000,
      );
    }
    expect((await worker.ended).exit).toBe('SIGKILL');
    const ids = await seen();
    showFigures(context, {
      'events committed': committed.length,
      'rows seen': ids.length,
      'seen twice': ids.length - new Set(ids).size,
    });
    expect(new Set(ids).size).toBe(ids.length);
    expect(committed).toEqual(expect.arrayContaining([...ids]));
  });

  it('again and again, at random, has every event once in the end, and leaves no file behind', async (context) => {
    const seed = seedOfRun();
    showFigures(context, { seed });
    const luck = seeded(seed);
    for (let kill = 0; kill < RANDOM_KILLS; kill += 1) {
      const worker = startWorker({});
      await untilReady(worker);
      await Promise.all([commitEvents(ROUND), delay(luck.integer(1_500)).then(() => worker.destroy())]);
    }
    await world.start('warehouse-worker');
    await world.untilAtRest(120_000);
    const ids = await seen();
    const { files, staged } = warehouseCollections(world.client.db('warehouse'));
    showFigures(context, {
      kills: RANDOM_KILLS,
      'events committed': committed.length,
      'rows seen': ids.length,
      'seen twice': ids.length - new Set(ids).size,
      files: await files.countDocuments(),
    });
    expect(ids, `seed ${seed}`).toEqual(committed.toSorted());
    expect(await staged.countDocuments()).toBe(0);
    // What the last one killed left was removed when the one after it began.
    await expect
      .poll(async () => (await filesBesideTheManifest()).length - (await files.countDocuments()), { timeout: 30_000 })
      .toBe(0);
  });
});
