import { runTransaction } from '@nightporter/mongo';
import { createLogger, createMetrics } from '@nightporter/runtime';
import { LANDER_METRICS, createLander } from '@nightporter/warehouse-worker';
import { randomUUID } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { sharedDatabase } from '../conformance/mongo-database.js';
import { codeOf } from './outbox-fixture.js';
import { die, Killed, LEASE_MS, warehouses } from './warehouse.support.js';

const shared = sharedDatabase();
const openWarehouse = warehouses(shared);

describe('a warehouse', () => {
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
    const registries = [1, 2].map(() => createMetrics({}, { service: 'warehouse-worker', checks: {} }));
    const landers = registries.map((registry) => {
      const metrics = registry.extend(LANDER_METRICS);
      return createLander({ ...own.ports, clock, random: Math.random, logger, newOwner: randomUUID, metrics }, options);
    });
    const running = landers.map((lander) => lander.run());
    const states = () => landers.map((lander) => (lander.snapshot() as { state: string }).state);
    await expect.poll(states, { timeout: 20_000 }).toContain('landing');
    const ids = [...(await own.stage(25))];
    await expect.poll(() => own.landed(), { timeout: 20_000 }).toEqual(ids.sort());
    const first = states().indexOf('landing');
    expect(states()[1 - first]).toBe('standing-by');
    // What was landed is counted by whoever landed it, and everybody tells what is left.
    const told = (await registries[first]!.read()).text;
    expect(told).toContain('nightporter_lander_events_total{service="warehouse-worker"} 25');
    expect(told).toContain('nightporter_lander_queryable_seconds_count{service="warehouse-worker"} 25');
    expect(told).toContain('nightporter_lander_rows_total{table="events",service="warehouse-worker"} 25');
    expect(told).toContain('nightporter_lander_landing{service="warehouse-worker"} 1');
    expect(told).toContain('nightporter_lander_failures_total{service="warehouse-worker"} 0');
    const other = (await registries[1 - first]!.read()).text;
    expect(other).toContain('nightporter_lander_staged_events{service="warehouse-worker"} 0');
    expect(other).toContain('nightporter_lander_landing{service="warehouse-worker"} 0');
    await landers[first]!.stop();
    ids.push(...(await own.stage(3)));
    await expect.poll(() => own.landed(), { timeout: 20_000 }).toEqual(ids.sort());
    await landers[1 - first]!.stop();
    await Promise.all(running);
  });
});
