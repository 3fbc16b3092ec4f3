import { NightporterError } from '@nightporter/protocol';
import type { ConsumerEvent } from '@nightporter/consumer';
import { describe, expect, it } from 'vitest';
import { TOPIC, send, settled, stopMember } from './consumer-engine.support.js';
import { GROUP, commitOrders, createLedgerWorld, mark, publish, startSweeper } from './ledger-sweep.support.js';

function toldOf(told: readonly ConsumerEvent[], kind: ConsumerEvent['kind']): readonly ConsumerEvent[] {
  return told.filter((event) => event.kind === kind);
}

describe('the watermark', () => {
  it('follows what is settled or parked up to the lag, and makes the group live', async () => {
    const world = await createLedgerWorld();
    await publish(world, commitOrders(world, 'a', 3), { isLost: () => true });
    const member = startSweeper(world, { options: { ledgerPageMax: 1 } });
    await world.clock.advance(40_000);
    const entry = world.database.groups.groups.get(GROUP);
    expect(entry?.state).toBe('live');
    expect(entry?.watermarkMs).toBeGreaterThan(world.clock.now() - 21_000);
    expect(entry?.watermarkMs).toBeLessThanOrEqual(world.clock.now() - 10_000);
    await stopMember(world, member);
  });

  it.each([
    ['between a page and the watermark', 1],
    ['between two pages', 2],
  ])('goes back for a topic that is added %s, and on only once that was compared', async (_when, at) => {
    const world = await createLedgerWorld();
    world.database.groups.register(GROUP, { topics: ['other-events'] });
    // Of aggregates that fall silent: no gap tells of them.
    for (const name of ['a', 'b', 'c']) {
      await publish(world, commitOrders(world, name, 1), { isLost: () => true });
      await world.clock.advance(200_000);
    }
    let walks = 0;
    const add = (): void => {
      walks += 1;
      if (walks === at) world.database.groups.register(GROUP, { topics: ['other-events', TOPIC] });
    };
    const producer = world.producer(GROUP);
    const member = startSweeper(world, {
      options: { ledgerPageMax: 1 },
      ports: ({ ledgerSweep }) => ({
        ledgerSweep: {
          gaps: ledgerSweep!.gaps,
          producers: [
            {
              ledger: {
                ...producer.ledger,
                readPublished: async (request) => {
                  const page = await producer.ledger.readPublished(request);
                  add();
                  return page;
                },
              },
              registry: producer.registry,
            },
          ],
        },
      }),
    });
    await world.clock.advance(120_000);
    expect([...member.effects()].sort()).toEqual(['a-1', 'b-1', 'c-1']);
    expect(world.database.groups.groups.get(GROUP)).toMatchObject({ state: 'live' });
    await stopMember(world, member);
  });

  it('stays where it is while the group’s database takes nothing', async () => {
    const world = await createLedgerWorld();
    await mark(world, commitOrders(world, 'a', 1)[0]!);
    const publishedAtMs = world.clock.now();
    let isDown = true;
    const member = startSweeper(world, {
      ports: ({ store }) => ({
        store: {
          transact: (work) =>
            store.transact((transaction) =>
              work({
                session: transaction.session,
                load: (events) => transaction.load(events),
                save: (changes) =>
                  isDown
                    ? Promise.reject(new NightporterError('NP_STORE_UNAVAILABLE', 'down'))
                    : transaction.save(changes),
              }),
            ),
        },
      }),
    });
    await world.clock.advance(120_000);
    expect(world.database.groups.groups.get(GROUP)?.watermarkMs).toBeLessThan(publishedAtMs);
    isDown = false;
    await world.clock.advance(60_000);
    expect(member.effects()).toEqual(['a-1']);
    expect(world.database.groups.groups.get(GROUP)?.watermarkMs).toBeGreaterThan(publishedAtMs);
    await stopMember(world, member);
  });

  it('leaves room behind itself for marks that show late', async () => {
    const world = await createLedgerWorld();
    const [row] = commitOrders(world, 'a', 1);
    let isVisible = false;
    await mark(world, row!);
    const member = startSweeper(world, {
      ports: ({ ledgerSweep }) => ({
        ledgerSweep: {
          ...ledgerSweep!,
          producers: ledgerSweep!.producers.map(({ ledger, registry }) => ({
            registry,
            ledger: {
              readVersions: (places) => ledger.readVersions(places),
              async readPublished(request) {
                const page = await ledger.readPublished(request);
                return isVisible ? page : { ...page, rows: [] };
              },
            },
          })),
        },
      }),
    });
    await world.clock.advance(40_000);
    expect(member.effects()).toEqual([]);
    isVisible = true;
    await world.clock.advance(12_000);
    expect(member.effects()).toEqual(['a-1']);
    await stopMember(world, member);
  });
});

describe('the members of a group', () => {
  it('walk one at a time, and another goes on when one is gone', async () => {
    const world = await createLedgerWorld();
    const first = startSweeper(world);
    await world.clock.advance(1_000);
    const owner = world.database.groups.groups.get(GROUP)?.sweeper?.owner;
    const second = startSweeper(world);
    await world.clock.advance(30_000);
    expect(world.database.groups.groups.get(GROUP)?.sweeper?.owner).toBe(owner);
    await stopMember(world, first);
    expect(world.database.groups.groups.get(GROUP)?.sweeper?.owner).not.toBe(owner);
    await mark(world, commitOrders(world, 'a', 1)[0]!);
    await world.clock.advance(25_000);
    expect(second.effects()).toEqual(['a-1']);
    await stopMember(world, second);
  });

  it('go on consuming while the producer’s database is away', async () => {
    const world = await createLedgerWorld();
    const fail = (): Promise<never> => Promise.reject(new NightporterError('NP_STORE_UNAVAILABLE', 'away'));
    const member = startSweeper(world, {
      ports: ({ ledgerSweep }) => ({
        ledgerSweep: {
          gaps: ledgerSweep!.gaps,
          producers: [
            {
              ledger: { readPublished: fail, readVersions: fail },
              registry: { standing: fail, claim: fail, advance: fail, release: fail },
            },
          ],
        },
      }),
    });
    send(world, { aggregateId: 'gap', version: 2 });
    await world.clock.advance(30_000);
    await publish(world, commitOrders(world, 'a', 1));
    await settled(world);
    expect(member.effects()).toEqual(['a-1']);
    expect(member.consumer.snapshot()).toMatchObject({ paused: false, databaseFailures: 0 });
    expect(member.consumer.snapshot().ledgerFailures).toBeGreaterThan(2);
    await stopMember(world, member);
  });

  it('leave to the broker what waits in a backlog there', async () => {
    const world = await createLedgerWorld();
    await mark(world, commitOrders(world, 'a', 1)[0]!);
    const member = startSweeper(world, { options: { receiveMax: 1, ledgerBacklogLagMs: 60_000 } });
    for (let second = 1; second <= 40; second += 1) {
      send(world, { aggregateId: `busy-${second}`, version: 1 });
      await world.clock.advance(1_000);
    }
    expect(member.effects()).not.toContain('a-1');
    await world.clock.advance(25_000);
    expect(member.effects()).toContain('a-1');
    await stopMember(world, member);
  });

  it('are told when nobody registered the group', async () => {
    const world = await createLedgerWorld();
    world.database.groups.groups.delete(GROUP);
    const member = startSweeper(world);
    await world.clock.advance(1_000);
    expect(toldOf(member.told, 'unregistered')).toHaveLength(1);
    await stopMember(world, member);
  });
});
