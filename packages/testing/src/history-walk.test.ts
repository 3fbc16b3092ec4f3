import { NightporterError } from '@nightporter/protocol';
import { describe, expect, it } from 'vitest';
import { send, stopMember, type Member } from './consumer-engine.support.js';
import { commitOrdersFrom, entryOf, historyOf, names, start, type Ports } from './history.support.js';
import { GROUP, commitOrders, createLedgerWorld, mark, publish } from './ledger-sweep.support.js';
import type { MemoryWorld } from './memory/index.js';

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

  it.each<[string, { isAway?: boolean; isCommitted?: boolean }]>([
    ['the ledger does not have it', { isCommitted: false }],
    // What is sent here has another payload than what is committed.
    ['the ledger has it otherwise', {}],
    ['the ledger cannot be asked', { isAway: true }],
  ])('is parked where it came too early and %s: nobody else might bring it', async (_why, change) => {
    const { isAway = false, isCommitted = true } = change;
    const world = await createLedgerWorld();
    await historyOf(world, ['a'], 3);
    const member = start(world, {
      options: { gapWaitMs: 600_000 },
      ports: ({ ledgerSweep }) => {
        const { gaps, producers } = whileHeld(world, ledgerSweep!, { ledger: true });
        const away = () => Promise.reject(new NightporterError('NP_STORE_UNAVAILABLE', 'away'));
        const asked = producers.map(({ ledger, registry }) => ({
          registry,
          ledger: isAway ? { ...ledger, readVersions: away } : ledger,
        }));
        return { ledgerSweep: { gaps, producers: asked } };
      },
    });
    await world.clock.advance(1_500);
    if (isCommitted) for (const row of commitOrdersFrom(world, 'a', 2)) await mark(world, row);
    send(world, { aggregateId: 'a', version: 5 });
    await world.clock.advance(5_000);
    expect(member.parked()).toMatchObject([{ event: { envelope: { eventId: 'a-5' } } }]);
    expect(member.consumer.snapshot()).toMatchObject({ leftToLedger: 0, acknowledged: 1 });
    await stopMember(world, member);
  });

  it('is parked between two walks, and its gap closed in its own time', async () => {
    const world = await createLedgerWorld();
    await historyOf(world, ['a'], 3);
    // The group is not live before its watermark has passed the moment at which it came, which the next walk would see to.
    const member = start(world, { options: { ledgerEveryMs: 600_000, ledgerLagMs: 60_000, gapWaitMs: 1_000 } });
    await world.clock.advance(70_000);
    const isWalked = member.effects().length;
    const [lost, late] = commitOrders(world, 'b', 2);
    await publish(world, [lost!, late!], { isLost: (row) => row === lost });
    await world.clock.advance(20_000);
    expect(entryOf(world)).toMatchObject({ state: 'bootstrapping' });
    expect(member.effects().slice(isWalked)).toEqual(['b-1', 'b-2']);
    expect(member.consumer.snapshot()).toMatchObject({ leftToLedger: 0 });
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
