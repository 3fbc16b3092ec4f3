import type { ConsumerPorts } from '@nightporter/consumer';
import { NightporterError, type EventId } from '@nightporter/protocol';
import { describe, expect, it } from 'vitest';
import {
  TOPIC,
  mortalPorts,
  stopMember,
  type Member,
  type MemberSetup,
  type Mortal,
} from './consumer-engine.support.js';
import { GROUP, commitOrders, createLedgerWorld, mark, publish, startSweeper } from './ledger-sweep.support.js';
import type { MemorySession, MemoryWorld } from './memory/index.js';

type Ports = ConsumerPorts<MemorySession>;

const OPTIONS = { ledgerLagMs: 1, ledgerEveryMs: 1_000, catchUpMax: 64 };

/** What a group sees that is registered after all of this. */
async function historyOf(world: MemoryWorld, aggregates: readonly string[], versions = 1): Promise<void> {
  for (const name of aggregates) {
    for (const row of commitOrders(world, name, versions)) await mark(world, row);
    await world.clock.advance(10);
  }
  world.database.groups.register(GROUP, { topics: [TOPIC] });
}

const names = (count: number): readonly string[] => Array.from({ length: count }, (_, index) => `a${index}`);

/** A member that keeps record of what it begins. */
function start(world: MemoryWorld, setup: MemberSetup = {}): Member {
  return startSweeper(world, {
    ...setup,
    options: { ...OPTIONS, ...setup.options },
    ports: (ports) => {
      const recorded = { ...ports, started: world.groupStores(GROUP).started };
      return { ...recorded, ...setup.ports?.(recorded) };
    },
  });
}

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

const entryOf = (world: MemoryWorld) => world.database.groups.groups.get(GROUP);

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
    const rows = commitOrders(world, 'a', 3);
    for (const row of [...rows].reverse()) {
      await mark(world, row);
      await world.clock.advance(5);
    }
    world.database.groups.register(GROUP, { topics: [TOPIC] });
    const member = start(world);
    await world.clock.advance(5_000);
    expect(member.effects()).toEqual(['a-1', 'a-2', 'a-3']);
    expect(member.consumer.snapshot().parked).toMatchObject({ gap: 0, retry: 0 });
    await stopMember(world, member);
  });

  it('parks what the ledger brings a page too early, and runs it in its turn', async () => {
    const world = await createLedgerWorld();
    const rows = commitOrders(world, 'a', 3);
    for (const row of [...rows].reverse()) {
      await mark(world, row);
      await world.clock.advance(5);
    }
    world.database.groups.register(GROUP, { topics: [TOPIC] });
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

describe('two members that walk one history', () => {
  it('settle each event once, in order', async () => {
    const world = await createLedgerWorld();
    await historyOf(world, names(20), 5);
    const walking = (): Member =>
      start(world, {
        options: { ledgerPageMax: 30, catchUpMax: 8 },
        // Each takes the sweep for its own.
        ports: ({ ledgerSweep }) => ({
          ledgerSweep: {
            ...ledgerSweep!,
            producers: ledgerSweep!.producers.map(({ ledger, registry }) => ({
              ledger,
              registry: {
                ...registry,
                claim: async (request) => {
                  const entry = entryOf(world);
                  if (entry !== undefined) world.database.groups.groups.set(GROUP, { ...entry, sweeper: null });
                  return registry.claim(request);
                },
              },
            })),
          },
        }),
      });
    const members = [walking(), walking()];
    await world.clock.advance(120_000);
    const { effects } = world.group(GROUP);
    expect(effects).toHaveLength(100);
    expect(new Set(effects).size).toBe(100);
    for (const name of names(20)) {
      expect(effects.filter((id) => id.startsWith(`${name}-`))).toEqual(
        [1, 2, 3, 4, 5].map((version) => `${name}-${version}`),
      );
    }
    expect(world.group(GROUP).parked()).toEqual([]);
    expect(entryOf(world)).toMatchObject({ state: 'live' });
    for (const member of members) await stopMember(world, member);
  });

  it('leave it to the one that took it over: whoever lost the claim begins no further batch', async () => {
    const world = await createLedgerWorld();
    await historyOf(world, names(40));
    const member = start(world, {
      options: { ledgerClaimMs: 2_000, catchUpMax: 4, handlerMs: 20_000, claimMs: 30_000 },
      handlers: {
        OrderPaid: async ({ event, session }) => {
          await new Promise<void>((resolve) => world.clock.after(400, resolve));
          await session.effect(event.eventId);
        },
      },
    });
    await world.clock.advance(1_000);
    const entry = entryOf(world)!;
    world.database.groups.groups.set(GROUP, {
      ...entry,
      sweeper: { owner: 'another', untilMs: Number.MAX_SAFE_INTEGER },
    });
    await world.clock.advance(60_000);
    // At most the batches that began while the claim was young: two.
    expect(member.effects().length).toBeLessThanOrEqual(8);
    expect(entryOf(world)).toMatchObject({ state: 'bootstrapping' });
    await stopMember(world, member);
  });
});

describe('what comes from the broker while a group walks its history', () => {
  it('is not parked where it came too early, and is applied in its turn, once', async () => {
    const world = await createLedgerWorld();
    await historyOf(world, ['a'], 3);
    const isHeld = { ledger: true };
    const member = start(world, {
      ports: ({ ledgerSweep }) => ({ ledgerSweep: whileHeld(world, ledgerSweep!, isHeld) }),
    });
    await world.clock.advance(1_500);
    await publish(world, commitOrdersFrom(world, 'a', 2));
    await world.clock.advance(5_000);
    expect(member.parked()).toEqual([]);
    expect(member.consumer.snapshot()).toMatchObject({ leftToLedger: 2, acknowledged: 2 });
    isHeld.ledger = false;
    await world.clock.advance(30_000);
    expect(member.effects()).toEqual(['a-1', 'a-2', 'a-3', 'a-4', 'a-5']);
    expect(member.parked()).toEqual([]);
    await stopMember(world, member);
  });

  it('is applied at once where it is its turn', async () => {
    const world = await createLedgerWorld();
    await historyOf(world, ['a'], 3);
    const member = start(world, {
      ports: ({ ledgerSweep }) => ({ ledgerSweep: whileHeld(world, ledgerSweep!, { ledger: true }) }),
    });
    await world.clock.advance(1_500);
    await publish(world, commitOrders(world, 'new', 2));
    await world.clock.advance(1_000);
    expect(member.effects()).toEqual(['new-1', 'new-2']);
    await stopMember(world, member);
  });
});

describe('a live group that lacks much', () => {
  it('settles it in batches, and parks what it lacks of a few', async () => {
    const world = await createLedgerWorld();
    const member = start(world, { options: { catchUpMax: 10 } });
    await world.clock.advance(5_000);
    expect(entryOf(world)).toMatchObject({ state: 'live' });
    for (const name of names(11)) for (const row of commitOrders(world, name, 1)) await mark(world, row);
    await world.clock.advance(5_000);
    expect(member.effects()).toHaveLength(11);
    expect(member.consumer.snapshot().parked).toMatchObject({ retry: 0 });
    for (const name of names(10)) for (const row of commitOrdersFrom(world, name, 1)) await mark(world, row);
    await world.clock.advance(10_000);
    expect(member.effects()).toHaveLength(21);
    expect(member.consumer.snapshot().parked).toMatchObject({ retry: 10 });
    await stopMember(world, member);
  });

  it('goes on where one of several batches could not be read', async () => {
    const world = await createLedgerWorld();
    await historyOf(world, names(40));
    let refusals = 1;
    const member = start(world, {
      options: { receiveLoops: 4, catchUpMax: 5 },
      ports: ({ ledgerSweep }) => ({
        ledgerSweep: {
          ...ledgerSweep!,
          producers: ledgerSweep!.producers.map(({ ledger, registry }) => ({
            registry,
            ledger: {
              ...ledger,
              readVersions: (places) => {
                refusals -= 1;
                if (refusals === 0) return Promise.reject(new NightporterError('NP_STORE_UNAVAILABLE', 'away'));
                return ledger.readVersions(places);
              },
            },
          })),
        },
      }),
    });
    await world.clock.advance(10_000);
    expect(member.effects()).toHaveLength(40);
    expect(member.consumer.snapshot()).toMatchObject({ ledgerFailures: 1, parked: { retry: 0 } });
    await stopMember(world, member);
  });
});

/** The next events of an aggregate, after those that are there. */
function commitOrdersFrom(world: MemoryWorld, aggregateId: string, count: number): ReturnType<typeof commitOrders> {
  const known = world.database.outbox.rows().filter((row) => row.aggregateId === aggregateId).length;
  return commitOrders(world, aggregateId, count, known);
}

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

/** A ledger whose pages come only once nobody holds them. */
function whileHeld(
  world: MemoryWorld,
  { gaps, producers }: NonNullable<Ports['ledgerSweep']>,
  isHeld: { ledger: boolean },
): NonNullable<Ports['ledgerSweep']> {
  return {
    gaps,
    producers: producers.map(({ ledger, registry }) => ({
      registry,
      ledger: {
        ...ledger,
        readPublished: async (request) => {
          while (isHeld.ledger) await new Promise<void>((resolve) => world.clock.after(100, resolve));
          return ledger.readPublished(request);
        },
      },
    })),
  };
}
