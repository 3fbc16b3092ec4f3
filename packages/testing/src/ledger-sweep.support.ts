import { epoch, eventId, namespace } from '@nightporter/protocol';
import { TOPIC, startMember, type Member, type MemberSetup } from './consumer-engine.support.js';
import { createMemoryWorld, type MemoryWorld } from './memory/index.js';
import type { OutboxRow } from '@nightporter/contracts';

export const GROUP = 'billing';
/** A moment that is not the beginning of time. */
const START_MS = 1_000_000;

/** A world in which the group is registered from the beginning. */
export async function createLedgerWorld(): Promise<MemoryWorld> {
  const world = createMemoryWorld();
  await world.clock.advance(START_MS);
  world.database.groups.register(GROUP, { topics: [TOPIC] });
  return world;
}

/** Commits one event after another of an aggregate, behind the `known` first ones; `OrderPaid`, which the members handle. */
export function commitOrders(world: MemoryWorld, aggregateId: string, count: number, known = 0): readonly OutboxRow[] {
  return Array.from({ length: count }, (_, offset) => known + offset)
    .map((index) =>
      world.database.outbox.commit([
        {
          namespace: namespace('orders.outbox'),
          eventId: eventId(`${aggregateId}-${index + 1}`),
          source: 'orders',
          aggregateType: 'order',
          aggregateId,
          eventType: 'OrderPaid',
          topic: TOPIC,
          payload: { number: index + 1 },
        },
      ]),
    )
    .flat();
}

/** Sends and marks, as the relay does; what is `lost` the broker takes and loses. */
export async function publish(
  world: MemoryWorld,
  rows: readonly OutboxRow[],
  { isLost = () => false }: { isLost?: (row: OutboxRow) => boolean } = {},
): Promise<void> {
  world.broker.loses = ({ row }) => isLost(row);
  for (const row of rows) {
    const { messageId } = await world.publisher().publish({ row, relay: 'relay', epoch: epoch(1) });
    await mark(world, row, messageId);
  }
}

export async function mark(world: MemoryWorld, row: OutboxRow, messageId = 'never sent'): Promise<void> {
  const { eventId: id, form, namespace: of, topic } = row;
  const publication = { messageId, topic, relay: 'relay', epoch: epoch(1), form, sinceCaptureMs: 0 };
  await world.relayStores().marker.mark([{ kind: 'published', namespace: of, eventId: id, ...publication }]);
}

/** A member that compares itself with the ledger. */
export function startSweeper(world: MemoryWorld, setup: MemberSetup = {}): Member {
  return startMember(world, {
    ...setup,
    ports: (ports) => {
      const { gaps } = world.groupStores(GROUP);
      const swept = { ...ports, ledgerSweep: { gaps, producers: [world.producer(GROUP)] } };
      return { ...swept, ...setup.ports?.(swept) };
    },
  });
}
