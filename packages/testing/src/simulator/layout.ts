import { defaultEventKey } from '@nightporter/contracts';
import { namespace, slot, slotOf, type Namespace, type Slot } from '@nightporter/protocol';
import type { Shard } from '@nightporter/relay';
import type { Knobs } from './knobs.js';

/** An aggregate that transactions write events of. */
export interface SimulatedAggregate {
  readonly namespace: Namespace;
  readonly source: string;
  readonly aggregateType: string;
  readonly aggregateId: string;
  readonly topic: string;
  readonly eventKey: string;
}

/** Where a group's handlers write events of their own, and which group reads those. */
export const EMITTED = {
  by: 'group-1',
  readBy: 'group-2',
  namespace: namespace('shipping.outbox'),
  source: 'shipping',
  aggregateType: 'shipment',
  topic: 'shipments-events',
} as const;

export const GROUPS = ['group-1', 'group-2'] as const;

/** The group that comes when there are events already, if one does. */
export function lateGroupOf(knobs: Knobs): string | null {
  return knobs.lateGroup ? EMITTED.readBy : null;
}

/** Every second aggregate is of another type, with a topic of its own. */
export function layOutAggregates(knobs: Knobs): readonly SimulatedAggregate[] {
  return Array.from({ length: knobs.aggregates }, (_, index) => {
    const aggregateType = index % 2 === 0 ? 'order' : 'invoice';
    const topic = `${aggregateType}s-events`;
    const identity = { source: 'orders', aggregateType, aggregateId: `a${index}` };
    const eventKey = knobs.sharedMessageGroup ? topic : defaultEventKey(identity);
    return { ...identity, namespace: namespace('orders.outbox'), topic, eventKey };
  });
}

export function topicsOf(group: string, knobs: Knobs): readonly string[] {
  const topics = knobs.aggregates > 1 ? ['orders-events', 'invoices-events'] : ['orders-events'];
  return knobs.emits && group === EMITTED.readBy ? [...topics, EMITTED.topic] : topics;
}

/** Where the broker keeps what it has given up for a group. */
export function deadLetterTopic(group: string): string {
  return `%DLQ%${group}`;
}

/** Shards that relays share out. */
const SHARED = 4;

/** Only slots that are in use, and one that is not: an idle slot costs a call in every sweep and teaches nothing. */
export function layOutShards(aggregates: readonly SimulatedAggregate[], knobs: Knobs): readonly Shard[] {
  const used = new Set<Slot>();
  for (const { eventKey, aggregateId } of aggregates) {
    used.add(slotOf(eventKey));
    const { source, aggregateType } = EMITTED;
    if (knobs.emits) used.add(slotOf(defaultEventKey({ source, aggregateType, aggregateId })));
  }
  const idle = Array.from({ length: 64 }, (_, index) => slot(index)).find((candidate) => !used.has(candidate));
  const slots = [...used, ...(idle === undefined ? [] : [idle])];
  if (knobs.sharing) {
    const of = (shard: number): readonly Slot[] => slots.filter((_, index) => index % SHARED === shard);
    return Array.from({ length: SHARED }, (_, shard) => ({ id: `${SHARED}-${shard}`, slots: of(shard) }));
  }
  if (!knobs.twoShards) return [{ id: 'all', slots }];
  return [
    { id: 'even', slots: slots.filter((_, index) => index % 2 === 0) },
    { id: 'odd', slots: slots.filter((_, index) => index % 2 === 1) },
  ];
}
