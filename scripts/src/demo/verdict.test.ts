import { digestOf, envelopeOf, type OutboxDocument } from '@nightporter/contracts';
import type { MovementDocument, ReservationDocument } from '@nightporter/inventory-worker';
import type { InboxDocument, PositionDocument } from '@nightporter/mongo';
import type { Order, OrderDocument } from '@nightporter/orders-api';
import { aggregateKey } from '@nightporter/protocol';
import { describe, expect, it } from 'vitest';
import type { Evidence, GroupEvidence } from './evidence.js';
import type { Acknowledged } from './traffic.js';
import { judge, type Case } from './verdict.js';

const GROUP = 'inventory';
const lines = [{ productId: 'apple', quantity: 2 }];
const moment = (ms: number): Date => new Date(1_000_000 + ms);

type Mutable<Value> = { -readonly [Key in keyof Value]: Value[Key] };

function row(
  place: Pick<OutboxDocument, 'source' | 'aggregateType' | 'topic' | 'eventType'> & {
    version: number;
    causationId?: string;
  },
): OutboxDocument {
  const { version, causationId, ...names } = place;
  const partial = {
    ...names,
    _id: `${names.eventType}-${version}`,
    aggregateId: 'o1',
    aggregateVersion: version,
    eventVersion: 1,
    occurredAt: moment(version),
    headers: causationId === undefined ? {} : { causationId },
    payload: { version },
    status: 'PUBLISHED',
    createdAt: moment(version),
    publishedAt: moment(version + 1),
    publication: {
      messageId: `message-${version}`,
      topic: names.topic,
      relay: 'r',
      epoch: 1,
      capturedAt: moment(version),
      form: 'original',
    },
  } as unknown as OutboxDocument;
  return { ...partial, digest: digestOf(envelopeOf(partial, 'original')) };
}

const order = (eventType: string, version: number): OutboxDocument =>
  row({ source: 'orders', aggregateType: 'order', topic: 'orders-events', eventType, version });
const reservation = (eventType: string, version: number, causationId: string): OutboxDocument =>
  row({
    source: 'inventory',
    aggregateType: 'reservation',
    topic: 'inventory-events',
    eventType,
    version,
    causationId,
  });

/** One order that was created, paid and cancelled; two apples were reserved and given back. */
function goodCase() {
  const rows = [order('OrderCreated', 1), order('OrderPaid', 2), order('OrderCancelled', 3)];
  const key = aggregateKey(rows[0]!);
  const inbox = rows.map((event): InboxDocument => ({
    _id: `${GROUP}|${key}#${event.aggregateVersion}`,
    group: GROUP,
    eventId: event._id,
    aggregate: key,
    version: event.aggregateVersion,
    outcome: event.eventType === 'OrderPaid' ? 'ignored' : 'applied',
    digest: event.digest,
    appliedDigest: event.digest,
    attempts: 1,
    duplicates: 0,
    receivedAt: moment(event.aggregateVersion + 2),
    processedAt: moment(event.aggregateVersion + 3),
    expireAt: moment(1e6),
  }));
  const movement = (sequence: number, kind: MovementDocument['kind'], event: OutboxDocument): MovementDocument => ({
    orderId: 'o1',
    sequence,
    kind,
    lines,
    shortages: [],
    eventId: event._id,
    eventType: event.eventType,
    aggregateVersion: event.aggregateVersion,
    at: moment(5),
  });
  const position: PositionDocument = {
    _id: `${GROUP}|${key}`,
    group: GROUP,
    aggregate: key,
    version: 3,
    startVersion: 0,
    state: 'open',
    revision: 3,
  };
  const group: Mutable<GroupEvidence> = {
    group: GROUP,
    topics: ['orders-events'],
    inbox,
    positions: [position],
    parked: [],
    setAside: 0,
  };
  const evidence: Mutable<Evidence> = {
    rows: [
      ...rows,
      reservation('InventoryReserved', 1, rows[0]!._id),
      reservation('InventoryReleased', 2, rows[2]!._id),
    ],
    heads: [{ _id: key, version: rows[2]!.aggregateVersion, eventKey: key }],
    groups: [group],
    orders: [{ _id: 'o1', version: 3, status: 'CANCELLED' } as OrderDocument],
    stock: [{ _id: 'apple', available: 10, reserved: 0, shipped: 0 }],
    reservations: [{ _id: 'o1', state: 'released', lines, movements: 2 } as unknown as ReservationDocument],
    movements: [movement(1, 'reserved', rows[0]!), movement(2, 'released', rows[2]!)],
  };
  const acknowledged: Acknowledged[] = rows.map(({ eventType, aggregateVersion }) => ({
    orderId: 'o1',
    eventType,
    version: aggregateVersion,
  }));
  const traffic = {
    acknowledged,
    orders: new Map([['o1', { orderId: 'o1', version: 3, status: 'CANCELLED' } as Order]]),
  };
  return {
    rows,
    group,
    evidence,
    traffic,
    movement,
    asCase: (): Case => ({
      traffic,
      evidence,
      stock: new Map([['apple', 10]]),
      stockGroup: { group: GROUP, topics: ['orders-events'] },
    }),
  };
}

type Good = ReturnType<typeof goodCase>;

const FAULTS: Record<string, { readonly break: (good: Good) => void; readonly kind: string }> = {
  'a command that was acknowledged without an event': {
    kind: 'lost',
    break: ({ traffic }) => traffic.acknowledged.push({ orderId: 'o2', eventType: 'OrderCreated', version: 1 }),
  },
  'an event that nobody was promised': { kind: 'phantom', break: ({ traffic }) => traffic.acknowledged.pop() },
  'an order that a worker completed because of another event': {
    kind: 'phantom',
    break: ({ evidence, rows }) =>
      (evidence.rows = [...evidence.rows, { ...order('OrderCompleted', 4), headers: { causationId: rows[0]!._id } }]),
  },
  'an order that its last event did not lead to': {
    kind: 'lost',
    break: ({ traffic }) => {
      traffic.acknowledged.pop();
      traffic.orders.set('o1', { orderId: 'o1', version: 2, status: 'PAID' } as Order);
      traffic.acknowledged.push({ orderId: 'o1', eventType: 'OrderCompleted', version: 3 });
    },
  },
  'an event of another type than was acknowledged': {
    kind: 'lost',
    break: ({ traffic }) => (traffic.acknowledged[1] = { orderId: 'o1', eventType: 'OrderCompleted', version: 2 }),
  },
  'an order that is not as it was answered': {
    kind: 'lost',
    break: ({ evidence }) => (evidence.orders = [{ _id: 'o1', version: 3, status: 'PAID' } as OrderDocument]),
  },
  'a head that is not at the last version': {
    kind: 'lost',
    break: ({ evidence }) =>
      (evidence.heads = evidence.heads.map((head) => ({ ...head, version: 2 as typeof head.version }))),
  },
  'a hole in the versions': {
    kind: 'lost',
    break: ({ evidence }) => (evidence.rows = evidence.rows.filter(({ eventType }) => eventType !== 'OrderPaid')),
  },
  'an event that was never published': {
    kind: 'stuck',
    break: ({ evidence }) =>
      (evidence.rows = evidence.rows.map((event) =>
        event.eventType === 'OrderCancelled' ? { ...event, status: 'PENDING' } : event,
      )),
  },
  'an event that counts as published without a message': {
    kind: 'lost',
    break: ({ evidence }) =>
      (evidence.rows = evidence.rows.map((event) =>
        event.eventType === 'OrderPaid' ? { ...event, publication: null } : event,
      )),
  },
  'a payload that was changed after the digest was made': {
    kind: 'altered',
    break: ({ evidence }) =>
      (evidence.rows = evidence.rows.map((event) =>
        event.eventType === 'OrderCreated' ? { ...event, payload: {} } : event,
      )),
  },
  'an event that the group never settled': {
    kind: 'lost',
    break: ({ group }) => (group.inbox = group.inbox.slice(0, 2)),
  },
  'an effect that came twice': {
    kind: 'doubled',
    break: ({ evidence, rows, movement }) =>
      (evidence.movements = [...evidence.movements, movement(3, 'reserved', rows[0]!)]),
  },
  'effects in the wrong order': {
    kind: 'out of order',
    break: ({ evidence }) => (evidence.movements = evidence.movements.toReversed()),
  },
  'an effect that left no trace': {
    kind: 'lost',
    break: ({ evidence }) => (evidence.movements = evidence.movements.slice(0, 1)),
  },
  'a version that was settled before its predecessor': {
    kind: 'out of order',
    break: ({ group }) =>
      (group.inbox = group.inbox.map((record) =>
        record.version === 1 ? { ...record, processedAt: moment(99) } : record,
      )),
  },
  'a digest that is not the one that was written': {
    kind: 'altered',
    break: ({ group }) => (group.inbox = group.inbox.map((record) => ({ ...record, digest: 'other' }))),
  },
  'an event that was settled in another place': {
    kind: 'altered',
    break: ({ group }) =>
      (group.inbox = group.inbox.map((record) => (record.version === 3 ? { ...record, version: 4 } : record))),
  },
  'a position that stands still': {
    kind: 'stuck',
    break: ({ group }) => (group.positions = group.positions.map((position) => ({ ...position, version: 2 }))),
  },
  'a position that is blocked': {
    kind: 'stuck',
    break: ({ group }) => (group.positions = group.positions.map((position) => ({ ...position, state: 'blocked' }))),
  },
  'a message that has no place in any sequence': { kind: 'stuck', break: ({ group }) => (group.setAside = 1) },
  'a group that is registered nowhere': { kind: 'lost', break: ({ evidence }) => (evidence.groups = []) },
  'a group that is registered for no topic': { kind: 'lost', break: ({ group }) => (group.topics = []) },
  'a product that is gone': { kind: 'altered', break: ({ evidence }) => (evidence.stock = []) },
  'a product that nobody put on the shelf': {
    kind: 'altered',
    break: ({ evidence }) =>
      (evidence.stock = [...evidence.stock, { _id: 'pear', available: 1, reserved: 0, shipped: 0 }]),
  },
  'a piece that is missing from the shelf': {
    kind: 'altered',
    break: ({ evidence }) => (evidence.stock = [{ _id: 'apple', available: 9, reserved: 0, shipped: 0 }]),
  },
  'a stock below zero': {
    kind: 'altered',
    break: ({ evidence }) => (evidence.stock = [{ _id: 'apple', available: 11, reserved: -1, shipped: 0 }]),
  },
  'a cancelled order that still holds its pieces': {
    kind: 'lost',
    break: ({ evidence }) =>
      (evidence.reservations = evidence.reservations.map((held) => ({ ...held, state: 'reserved' }))),
  },
  'a movement that was not told': {
    kind: 'lost',
    break: ({ evidence }) =>
      (evidence.rows = evidence.rows.filter(({ eventType }) => eventType !== 'InventoryReleased')),
  },
  'an event that was emitted without a movement': {
    kind: 'phantom',
    break: ({ evidence }) => (evidence.rows = [...evidence.rows, reservation('InventoryReserved', 3, 'nobody')]),
  },
};

describe('the verdict of the demo', () => {
  it('finds nothing wrong with a history that is in order', () => {
    expect(judge(goodCase().asCase())).toEqual([]);
  });

  it('finds nothing wrong where a worker has carried an order on, because of the event that has this consequence', () => {
    const { evidence, traffic, asCase } = goodCase();
    // Not the client but a worker cancelled it, because the stock was short.
    traffic.acknowledged.pop();
    traffic.orders.set('o1', { orderId: 'o1', version: 2, status: 'PAID' } as Order);
    const [created, paid, cancelled, reserved, released] = evidence.rows;
    const cause = { ...reserved!, eventType: 'InventoryRejected' } as OutboxDocument;
    const consequence = { ...cancelled!, headers: { causationId: cause._id } } as OutboxDocument;
    evidence.rows = [created!, paid!, consequence, cause, released!];
    const found = judge(asCase()).filter(({ detail }) => detail.includes('o1 ') || detail.includes('of o1'));
    expect(found.filter(({ kind }) => kind === 'phantom')).toEqual([]);
    expect(found.filter(({ detail }) => detail.includes('was answered'))).toEqual([]);
  });

  it.each(Object.entries(FAULTS))('notices %s', (_name, fault) => {
    const good = goodCase();
    fault.break(good);
    expect(judge(good.asCase()).map(({ kind }) => kind)).toContain(fault.kind);
  });
});
