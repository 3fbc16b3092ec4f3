import { createMemoryFilter, type DuplicateFilter } from '@nightporter/consumer';
import type { EventId } from '@nightporter/protocol';
import { describe, expect, it } from 'vitest';
import { start, world } from './consumer-engine.fixture.js';
import { TOPIC, keyFor, send, settled, type Member, type SentEvent } from './consumer-engine.support.js';

const FILTER_MS = 40;

interface FilterSetup {
  readonly filter: DuplicateFilter;
  readonly transactions?: { count: number };
}

function startFiltering({ filter, transactions = { count: 0 } }: FilterSetup): Member {
  const { repeats } = world.groupStores('billing');
  return start({
    options: { filterMs: FILTER_MS, filterPauseMs: 1_000, gapWaitMs: 60_000 },
    ports: ({ store }) => ({
      duplicates: { filter, repeats },
      store: {
        transact: (work) => {
          transactions.count += 1;
          return store.transact(work);
        },
      },
    }),
  });
}

/** Lets time pass until a lie, a failure or a hang can do no more harm than it has done. */
async function passTime(): Promise<void> {
  for (let step = 0; step < 40; step += 1) await world.clock.advance(100);
}

const forty = [...Array(4).keys()].flatMap((aggregate) =>
  [...Array(10).keys()].map((index): SentEvent => ({ aggregateId: `a${aggregate}`, version: index + 1 })),
);

/** Each event twice, and out of order: the order of a fixed, ragged walk. */
const doubledAndReordered = [...forty, ...forty].map((_, index, all) => all[(index * 37) % all.length]!);

const remember = (): Promise<void> => Promise.resolve();
const never = new Promise<never>(() => undefined);
let draws = 0;
const everySecond = (): boolean => (draws += 1) % 2 === 0;

const LIARS: readonly (readonly [string, DuplicateFilter])[] = [
  ['takes everything for settled', { seen: (events) => Promise.resolve(new Set(events)), remember }],
  ['takes nothing for settled', { seen: () => Promise.resolve(new Set<EventId>()), remember }],
  ['says what comes to its mind', { seen: (events) => Promise.resolve(new Set(events.filter(everySecond))), remember }],
  ['names events that nobody asked for', { seen: () => Promise.resolve(new Set(['x' as EventId])), remember }],
  ['rejects', { seen: () => Promise.reject(new Error('away')), remember: () => Promise.reject(new Error('away')) }],
  [
    'throws',
    {
      seen: () => {
        throw new Error('broken');
      },
      remember: () => {
        throw new Error('broken');
      },
    },
  ],
  ['answers nothing', { seen: () => Promise.resolve(null as never), remember }],
  ['answers with a list', { seen: (events) => Promise.resolve([...events] as never), remember }],
  ['hangs', { seen: () => never, remember: () => never }],
];

describe('A duplicate filter that', () => {
  it.each(LIARS)('%s loses and doubles nothing, and the order is kept', async (_name, filter) => {
    send(world, ...doubledAndReordered);
    const member = startFiltering({ filter });
    await passTime();
    // Once more, now that everything is settled.
    send(world, ...forty);
    await passTime();
    expect([...member.effects()].sort()).toEqual(forty.map((event) => `${event.aggregateId}-${event.version}`).sort());
    for (const aggregate of ['a0', 'a1', 'a2', 'a3']) {
      const own = member.effects().filter((effect) => effect.startsWith(`${aggregate}-`));
      expect(own).toEqual([...Array(10).keys()].map((index) => `${aggregate}-${index + 1}`));
      expect(world.group('billing').positionOf(keyFor(aggregate)).position.version).toBe(10);
    }
    expect(member.parked()).toEqual([]);
    expect(world.broker.topic(TOPIC).receive({ group: 'billing', max: 1, invisibleMs: 1 })).toEqual([]);
    expect(member.inbox().reduce((sum, { duplicates }) => sum + duplicates, 0)).toBeGreaterThanOrEqual(forty.length);
  });
});

describe('With a duplicate filter', () => {
  it('what is known to be settled is counted and acknowledged without a transaction', async () => {
    const transactions = { count: 0 };
    const member = startFiltering({ filter: createMemoryFilter(), transactions });
    send(world, { aggregateId: 'a', version: 1 });
    await settled(world);
    await passTime();
    const before = transactions.count;
    send(world, { aggregateId: 'a', version: 1 });
    await passTime();
    expect(transactions.count).toBe(before);
    expect(member.consumer.snapshot()).toMatchObject({
      duplicates: 1,
      filterConfirmed: 1,
      filterRefuted: 0,
      acknowledged: 2,
    });
    expect(member.inbox()).toMatchObject([{ duplicates: 1 }]);
  });

  it('a position that was lost is mended, although the filter knows the event', async () => {
    const filter = createMemoryFilter();
    startFiltering({ filter });
    send(world, { aggregateId: 'a', version: 1 });
    await passTime();
    world.group('billing').losePosition(keyFor('a'));
    send(world, { aggregateId: 'a', version: 1 });
    await passTime();
    expect(world.group('billing').positionOf(keyFor('a')).position.version).toBe(1);
  });

  it('another event in the place of a settled one is no duplicate, whatever the filter takes it for', async () => {
    const member = startFiltering({ filter: { seen: (events) => Promise.resolve(new Set(events)), remember } });
    send(world, { aggregateId: 'a', version: 1 }, { aggregateId: 'a', version: 2 });
    await passTime();
    send(world, { aggregateId: 'a', version: 1, id: 'impostor' }, { aggregateId: 'a', version: 2, id: 'a-1' });
    await passTime();
    expect(member.consumer.snapshot()).toMatchObject({ duplicates: 0, setAside: 2 });
  });

  it('one that failed is left alone for a while, so that it does not hold up every batch', async () => {
    let asked = 0;
    const filter: DuplicateFilter = { seen: () => ((asked += 1), never), remember };
    const member = startFiltering({ filter });
    for (let version = 1; version <= 10; version += 1) {
      send(world, { aggregateId: 'a', version });
      await world.clock.advance(60);
    }
    expect(member.effects()).toHaveLength(10);
    expect(asked).toBe(1);
    expect(member.consumer.snapshot().filterFailures).toBe(1);
  });
});
