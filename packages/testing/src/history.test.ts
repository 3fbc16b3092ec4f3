import type { EventId } from '@nightporter/protocol';
import { describe, expect, it } from 'vitest';
import { TOPIC, mortalPorts, stopMember, type Mortal } from './consumer-engine.support.js';
import { entryOf, historyOf, names, start, type Ports } from './history.support.js';
import { GROUP, commitOrders, createLedgerWorld, mark } from './ledger-sweep.support.js';
import type { MemoryWorld } from './memory/index.js';

/** Counts the transactions that settle. */
function counted(counts: { saves: number }): (ports: Ports) => Partial<Ports> {
  return ({ store }) => ({
    store: {
      transact: (work) =>
        store.transact((transaction) =>
          work({
            session: transaction.session,
            load: (events) => transaction.load(events),
            save: (changes) => {
              counts.saves += 1;
              return transaction.save(changes);
            },
          }),
        ),
    },
  });
}

/** As {@link historyOf}, of one aggregate, whose versions were marked in the wrong order. */
async function markedBackwards(world: MemoryWorld, aggregateId: string, versions: number): Promise<void> {
  for (const row of [...commitOrders(world, aggregateId, versions)].reverse()) {
    await mark(world, row);
    await world.clock.advance(5);
  }
  world.database.groups.register(GROUP, { topics: [TOPIC] });
}

describe('the history of a new group', () => {
  it('is settled in batches, in the order of each aggregate, and nothing of it is parked', async () => {
    const world = await createLedgerWorld();
    await historyOf(world, names(50), 4);
    const counts = { saves: 0 };
    const member = start(world, { ports: counted(counts) });
    await world.clock.advance(5_000);
    const expected = names(50).flatMap((name) => [1, 2, 3, 4].map((version) => `${name}-${version}`));
    expect([...member.effects()].sort()).toEqual([...expected].sort());
    for (const name of names(50)) {
      const own = member.effects().filter((id) => id.startsWith(`${name}-`));
      expect(own).toEqual([1, 2, 3, 4].map((version) => `${name}-${version}`));
    }
    expect(counts.saves).toBeLessThanOrEqual(8);
    expect(member.consumer.snapshot().parked).toEqual({ gap: 0, behind: 0, retry: 0, dead: 0 });
    expect(entryOf(world)).toMatchObject({ state: 'live' });
    await stopMember(world, member);
  });

  it.each([
    ['with batches of one', { catchUpMax: 1 }, {}],
    ['where nobody keeps record of what is begun', {}, { started: undefined }],
  ])('is parked and runs one by one %s', async (_when, options, ports) => {
    const world = await createLedgerWorld();
    await historyOf(world, names(10));
    const member = start(world, { options, ports: () => ports as Partial<Ports> });
    await world.clock.advance(20_000);
    expect(member.effects()).toHaveLength(10);
    expect(member.consumer.snapshot().parked).toMatchObject({ retry: 10 });
    await stopMember(world, member);
  });

  it('takes the versions of an aggregate in their order, whatever the order of their marks', async () => {
    const world = await createLedgerWorld();
    await markedBackwards(world, 'a', 3);
    const member = start(world);
    await world.clock.advance(5_000);
    expect(member.effects()).toEqual(['a-1', 'a-2', 'a-3']);
    expect(member.consumer.snapshot().parked).toMatchObject({ gap: 0, retry: 0 });
    await stopMember(world, member);
  });

  it('parks what the ledger brings a page too early, and runs it in its turn', async () => {
    const world = await createLedgerWorld();
    await markedBackwards(world, 'a', 3);
    const member = start(world, { options: { ledgerPageMax: 1 } });
    await world.clock.advance(10_000);
    expect(member.effects()).toEqual(['a-1', 'a-2', 'a-3']);
    expect(member.consumer.snapshot()).toMatchObject({ parked: { gap: 2 }, leftToLedger: 0 });
    await stopMember(world, member);
  });

  it('sets a handler’s failure apart, while its neighbours commit', async () => {
    const world = await createLedgerWorld();
    await historyOf(world, names(30));
    const member = start(world, {
      options: { retryScheduleMs: [600_000] },
      handlers: {
        OrderPaid: async ({ event, session }) => {
          if (event.eventId === 'a7-1') throw new Error('poison');
          await session.effect(event.eventId);
        },
      },
    });
    await world.clock.advance(5_000);
    expect(member.effects()).toHaveLength(29);
    expect(member.parked()).toMatchObject([{ state: 'retry', event: { envelope: { eventId: 'a7-1' } } }]);
    expect(entryOf(world)).toMatchObject({ state: 'live' });
    await stopMember(world, member);
  });

  it('is begun only once it is on record', async () => {
    const world = await createLedgerWorld();
    await historyOf(world, names(5));
    const begun: EventId[] = [];
    const early: string[] = [];
    const member = start(world, {
      ports: ({ started }) => ({
        started: {
          begin: async (batch) => {
            await new Promise<void>((resolve) => world.clock.after(500, resolve));
            const elsewhere = await started!.begin(batch);
            begun.push(...batch.events);
            return elsewhere;
          },
        },
      }),
      handlers: {
        OrderPaid: async ({ event, session }) => {
          if (!begun.includes(event.eventId)) early.push(event.eventId);
          await session.effect(event.eventId);
        },
      },
    });
    await world.clock.advance(5_000);
    expect(early).toEqual([]);
    expect(member.effects()).toHaveLength(5);
    await stopMember(world, member);
  });

  it('has an event that ends its process charged alone, and dead after its attempts, while its 63 neighbours apply', async () => {
    const world = await createLedgerWorld();
    await historyOf(world, names(64));
    let deaths = 0;
    for (let process = 0; process < 6; process += 1) {
      const mortal: Mortal = { isDead: false };
      start(world, {
        options: { attemptsMax: 2, claimMs: 40_000, ledgerClaimMs: 10_000 },
        ports: (ports) => ({ ...mortalPorts(ports, mortal), ledgerSweep: mortalSweep(ports, mortal) }),
        handlers: {
          OrderPaid: async ({ event, session }) => {
            if (event.eventId === 'a31-1') {
              mortal.isDead = true;
              deaths += 1;
              await new Promise(() => undefined);
            }
            await session.effect(event.eventId);
          },
        },
      });
      await world.clock.advance(60_000);
      mortal.isDead = true;
    }
    // Once with its neighbours, uncharged; then alone, as often as it has attempts.
    expect(deaths).toBe(3);
    expect(world.group(GROUP).effects).toHaveLength(63);
    expect(new Set(world.group(GROUP).effects).size).toBe(63);
    expect(world.group(GROUP).parked()).toMatchObject([
      { state: 'dead', attempts: 2, event: { envelope: { eventId: 'a31-1' } } },
    ]);
    expect(entryOf(world)).toMatchObject({ state: 'live' });
  });
});

describe('a member that stops in a batch', () => {
  it('leaves the watermark before what it rolls back, and another settles that once', async () => {
    const world = await createLedgerWorld();
    await historyOf(world, names(10));
    const slow = start(world, {
      options: { drainMs: 2_000 },
      handlers: { OrderPaid: () => new Promise(() => undefined) },
    });
    await world.clock.advance(3_000);
    await stopMember(world, slow);
    expect(world.group(GROUP).effects).toEqual([]);
    expect(entryOf(world)).toMatchObject({ watermarkMs: 0, state: 'bootstrapping', sweeper: null });
    const member = start(world);
    await world.clock.advance(20_000);
    expect([...member.effects()].sort()).toEqual(names(10).map((name) => `${name}-1`));
    await stopMember(world, member);
  });
});

/** A process that is dead asks its ledger nothing. */
function mortalSweep({ ledgerSweep }: Ports, mortal: Mortal): NonNullable<Ports['ledgerSweep']> {
  const alive = <Result>(call: () => Promise<Result>): Promise<Result> =>
    mortal.isDead ? new Promise<never>(() => undefined) : call();
  const { gaps, producers } = ledgerSweep!;
  return {
    gaps: { find: (request) => alive(() => gaps.find(request)) },
    producers: producers.map(({ ledger, registry }) => ({
      ledger: {
        readPublished: (request) => alive(() => ledger.readPublished(request)),
        readVersions: (places) => alive(() => ledger.readVersions(places)),
      },
      registry: {
        standing: () => alive(() => registry.standing()),
        claim: (request) => alive(() => registry.claim(request)),
        advance: (request) => alive(() => registry.advance(request)),
        release: (owner) => alive(() => registry.release(owner)),
      },
    })),
  };
}
