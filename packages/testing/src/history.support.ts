import type { ConsumerPorts } from '@nightporter/consumer';
import { TOPIC, type Member, type MemberSetup } from './consumer-engine.support.js';
import { GROUP, commitOrders, mark, startSweeper } from './ledger-sweep.support.js';
import type { MemorySession, MemoryWorld } from './memory/index.js';

export type Ports = ConsumerPorts<MemorySession>;

const OPTIONS = { ledgerLagMs: 1, ledgerEveryMs: 1_000, catchUpMax: 64 };

/** What a group sees that is registered after all of this. */
export async function historyOf(world: MemoryWorld, aggregates: readonly string[], versions = 1): Promise<void> {
  for (const name of aggregates) {
    for (const row of commitOrders(world, name, versions)) await mark(world, row);
    await world.clock.advance(10);
  }
  world.database.groups.register(GROUP, { topics: [TOPIC] });
}

export const names = (count: number): readonly string[] => Array.from({ length: count }, (_, index) => `a${index}`);

/** A member that keeps record of what it begins. */
export function start(world: MemoryWorld, setup: MemberSetup = {}): Member {
  return startSweeper(world, {
    ...setup,
    options: { ...OPTIONS, ...setup.options },
    ports: (ports) => {
      const recorded = { ...ports, started: world.groupStores(GROUP).started };
      return { ...recorded, ...setup.ports?.(recorded) };
    },
  });
}

export const entryOf = (world: MemoryWorld) => world.database.groups.groups.get(GROUP);

/** The next events of an aggregate, after those that are there. */
export function commitOrdersFrom(
  world: MemoryWorld,
  aggregateId: string,
  count: number,
): ReturnType<typeof commitOrders> {
  const known = world.database.outbox.rows().filter((row) => row.aggregateId === aggregateId).length;
  return commitOrders(world, aggregateId, count, known);
}
