import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { showFigures } from '../../support/figures.js';
import { seeded, seedOfRun, type Seeded } from '../support/seeded.js';
import { expectBooks } from '../support/shop-books.js';
import { runShopLoad, type Promised } from '../support/shop-load.js';
import { openShopWorld, WORKERS, type ShopService, type ShopWorld } from '../support/shop-world.js';
import { sized } from '../support/size.js';
import { secondsSince } from '../support/times.js';

const ORDERS = sized({ full: 600, small: 30 });
const CLIENTS = sized({ full: 16, small: 8 });
const KILLS = sized({ full: 40, small: 3 });
const REST_MS = 400_000;
/** Too few of each, so that some orders find the shelf empty. */
const PRODUCTS = ['apple', 'pear', 'plum'] as const;
const STOCK = new Map(PRODUCTS.map((product) => [product as string, Math.ceil(ORDERS * 1.2)]));

let world: ShopWorld;
const seed = seedOfRun();
const chance = seeded(seed);
/** Of all that was done so far: both sentences are about one shop, one after the other. */
const promised: Promised[] = [];

beforeAll(async () => {
  world = await openShopWorld({ stock: STOCK });
});
afterAll(() => world.close());

function customers(name: string): Promise<Promised> {
  const { apiUrl } = world;
  return runShopLoad({ apiUrl, chance: chance.fork(), orders: ORDERS, clients: CLIENTS, name, products: PRODUCTS });
}

/** Kills one process after another, whichever, and starts it again, until enough were killed. Returns who. */
async function killAtRandom(luck: Seeded): Promise<readonly ShopService[]> {
  const killed: ShopService[] = [];
  while (killed.length < KILLS) {
    await delay(luck.integer(1_500));
    const victim = luck.pick<ShopService>(['orders-api', 'relay', ...WORKERS]);
    await world.kill(victim);
    await delay(luck.integer(500));
    await world.start(victim);
    killed.push(victim);
  }
  return killed;
}

describe('the shop', () => {
  it('comes to rest with the same story everywhere when every worker was dead while the customers were there', async (context) => {
    showFigures(context, { seed });
    await Promise.all([world.start('orders-api'), world.start('relay')]);
    promised.push(await customers('without workers'));
    expect((await world.reconciled()).differencesTotal).toBeGreaterThan(0);
    const started = performance.now();
    for (const worker of WORKERS) await world.start(worker);
    await world.untilAtRest(REST_MS);
    const seconds = secondsSince(started);
    showFigures(context, {
      ...(await expectBooks(world, { promised, stock: STOCK })),
      's until all was at rest': seconds,
    });
  });

  it('comes to rest with the same story everywhere, whatever its customers do, and whoever is killed meanwhile', async (context) => {
    showFigures(context, { seed });
    const started = performance.now();
    const [load, killed] = await Promise.all([customers('with kills'), killAtRandom(chance.fork())]);
    promised.push(load);
    await world.untilAtRest(REST_MS);
    const seconds = secondsSince(started);
    const books = await expectBooks(world, { promised, stock: STOCK });
    showFigures(context, {
      ...books,
      kills: killed.length,
      killed: killed.join(' '),
      's until all was at rest': seconds,
    });
    expect(killed).toHaveLength(KILLS);
  });
});
