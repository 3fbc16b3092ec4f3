import type { ConsumerEvent } from '@nightporter/consumer';
import { NightporterError } from '@nightporter/protocol';
import { expect, it } from 'vitest';
import { TOPIC, stopMember } from './consumer-engine.support.js';
import { GROUP, commitOrders, createLedgerWorld, publish, startSweeper } from './ledger-sweep.support.js';
import type { MemoryWorld } from './memory/index.js';

type Told = Extract<ConsumerEvent, { kind: 'bootstrapping' | 'bootstrap-ended' }>;

const progressOf = (told: readonly ConsumerEvent[]): readonly Told[] =>
  told.filter((event) => event.kind === 'bootstrapping' || event.kind === 'bootstrap-ended');

/** Eight published events, at moments of their own. */
async function historyOf(world: MemoryWorld): Promise<void> {
  for (let index = 0; index < 8; index += 1) {
    await publish(world, commitOrders(world, `a${index}`, 1), { isLost: () => true });
    await world.clock.advance(1_000);
  }
}

it('a group that catches up tells how far it is of about how many, and that it is live', async () => {
  const world = await createLedgerWorld();
  await historyOf(world);
  world.database.groups.register(GROUP, { topics: [TOPIC] });
  const member = startSweeper(world, { options: { ledgerLagMs: 1, ledgerPageMax: 2, ledgerEveryMs: 1_000 } });
  await world.clock.advance(100);
  expect(progressOf(member.told)[0]).toMatchObject({ kind: 'bootstrapping', topics: [TOPIC], walked: 0, about: 8 });
  expect(member.consumer.snapshot().bootstrap).toMatchObject({ about: 8 });
  await world.clock.advance(20_000);
  expect(progressOf(member.told).at(-1)).toMatchObject({ kind: 'bootstrap-ended', how: 'live', walked: 8 });
  expect(member.consumer.snapshot().bootstrap).toBeNull();
  expect(member.effects()).toHaveLength(8);
  await stopMember(world, member);
});

it('it is told again every few seconds while it takes long, with the rate and the watermark', async () => {
  const world = await createLedgerWorld();
  await historyOf(world);
  world.database.groups.register(GROUP, { topics: [TOPIC] });
  const member = startSweeper(world, {
    options: { ledgerLagMs: 1, ledgerPageMax: 1 },
    ports: ({ ledgerSweep }) => ({
      ledgerSweep: {
        ...ledgerSweep!,
        producers: ledgerSweep!.producers.map(({ ledger, registry }) => ({
          registry,
          ledger: {
            ...ledger,
            readPublished: async (request) => {
              await new Promise<void>((resolve) => world.clock.after(3_000, resolve));
              return ledger.readPublished(request);
            },
          },
        })),
      },
    }),
  });
  await world.clock.advance(20_000);
  const told = progressOf(member.told).flatMap((event) => (event.kind === 'bootstrapping' ? [event] : []));
  expect(told.map(({ walked }) => walked)).toEqual([0, 2, 4, 6]);
  const watermarks = told.map(({ watermarkMs }) => watermarkMs);
  expect([...watermarks].sort((left, right) => left - right)).toEqual(watermarks);
  expect(new Set(watermarks).size).toBe(4);
  await world.clock.advance(60_000);
  await stopMember(world, member);
});

it('a ledger that cannot be counted keeps nobody from catching up', async () => {
  const world = await createLedgerWorld();
  await historyOf(world);
  world.database.groups.register(GROUP, { topics: [TOPIC] });
  const member = startSweeper(world, {
    options: { ledgerLagMs: 1 },
    ports: ({ ledgerSweep }) => ({
      ledgerSweep: {
        ...ledgerSweep!,
        producers: ledgerSweep!.producers.map(({ ledger, registry }) => ({
          registry,
          ledger: {
            ...ledger,
            countPublished: () => Promise.reject(new NightporterError('NP_STORE_UNAVAILABLE', 'slow')),
          },
        })),
      },
    }),
  });
  await world.clock.advance(30_000);
  expect(member.effects()).toHaveLength(8);
  expect(progressOf(member.told)[0]).toMatchObject({ about: null });
  await stopMember(world, member);
});
