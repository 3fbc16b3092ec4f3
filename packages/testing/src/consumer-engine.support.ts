import {
  createConsumer,
  type Consumer,
  type ConsumerEvent,
  type ConsumerOptions,
  type ConsumerPorts,
  type Handlers,
  type StartedRecords,
} from '@nightporter/consumer';
import { MESSAGE_PROPERTIES, digestOf, encodeEnvelope, type EventEnvelope } from '@nightporter/contracts';
import { aggregateKey, aggregateVersion, eventId, groupId, type AggregateKey } from '@nightporter/protocol';
import type { InboxDocument, MemorySession, MemoryWorld, ParkedDocument } from './memory/index.js';

/** What a sent event may differ in. */
export interface SentEvent {
  readonly aggregateId: string;
  readonly version: number;
  readonly id?: string;
  readonly eventType?: string;
  readonly eventVersion?: number;
  readonly form?: 'original' | 'tombstone';
  readonly digest?: string;
}

export const TOPIC = 'order-events';

export function envelopeFor(sent: SentEvent): EventEnvelope {
  const { aggregateId, eventType = 'OrderPaid', eventVersion = 1, form = 'original', version } = sent;
  return {
    eventId: eventId(sent.id ?? `${aggregateId}-${version}`),
    source: 'orders',
    eventType,
    eventVersion,
    aggregateType: 'order',
    aggregateId,
    aggregateVersion: aggregateVersion(version),
    occurredAt: '2026-01-02T03:04:05.678Z',
    data: form === 'tombstone' ? null : { version },
  };
}

export function keyFor(aggregateId: string): AggregateKey {
  return aggregateKey({ source: 'orders', aggregateType: 'order', aggregateId });
}

let messages = 0;

/** Puts an event on the topic, as the relay would. */
export function send(world: MemoryWorld, ...events: readonly SentEvent[]): void {
  for (const sent of events) {
    const envelope = envelopeFor(sent);
    messages += 1;
    world.broker.topic(TOPIC).append({
      messageId: `m${messages}`,
      messageGroup: sent.aggregateId,
      body: encodeEnvelope(envelope),
      properties: {
        [MESSAGE_PROPERTIES.form]: sent.form ?? 'original',
        [MESSAGE_PROPERTIES.digest]: sent.digest ?? digestOf(envelope),
      },
    });
  }
}

export interface Member {
  readonly consumer: Consumer;
  readonly told: ConsumerEvent[];
  readonly running: Promise<void>;
  readonly inbox: () => readonly InboxDocument[];
  readonly parked: () => readonly ParkedDocument[];
  readonly effects: () => readonly string[];
}

export interface MemberSetup {
  readonly handlers?: Handlers<MemorySession>;
  readonly options?: Partial<ConsumerOptions>;
  readonly group?: string;
  /** Puts faults between the engine and its ports. */
  readonly ports?: (ports: ConsumerPorts<MemorySession>) => Partial<ConsumerPorts<MemorySession>>;
}

/** The default handler leaves the event's id as its effect. */
export const leaveEffect: Handlers<MemorySession> = {
  OrderPaid: ({ event, session }) => session.effect(event.eventId),
};

/** Different numbers for each member, so that no two processes have one name. */
function counting(): () => number {
  starts += 1;
  let number = starts / 1_000;
  return () => (number = (number + 0.618) % 1);
}

let starts = 0;

/** Starts a member of a group; `group` is shared by the members of one world. */
export function startMember(world: MemoryWorld, setup: MemberSetup = {}): Member {
  const group = setup.group ?? 'billing';
  const told: ConsumerEvent[] = [];
  // Tests that want what was started on record bring a keeper of their own.
  const { store, parked } = world.groupStores(group);
  const plain: ConsumerPorts<MemorySession> = {
    subscribers: [world.subscriber({ group, topic: TOPIC })],
    store,
    parked,
    emitter: world.emitter,
    clock: world.clock,
    random: counting(),
    observe: (event) => told.push(event),
  };
  const consumer = createConsumer(
    { ...plain, ...setup.ports?.(plain) },
    { group: groupId(group), handlers: setup.handlers ?? leaveEffect, receiveLoops: 1, ...setup.options },
  );
  const documents = world.group(group);
  return {
    consumer,
    told,
    running: consumer.run(),
    inbox: () => documents.inbox(),
    parked: () => documents.parked(),
    effects: () => documents.effects,
  };
}

/** Lets the member do what it can without time passing. */
export async function settled(world: MemoryWorld): Promise<void> {
  await world.clock.advance(0);
}

/** Ends a member in the world's time. */
export async function stopMember(world: MemoryWorld, member: Member): Promise<void> {
  const stopped = member.consumer.stop();
  await world.clock.advance(11_000);
  await stopped;
  await member.running;
}

/** A process that can die: from then on none of its calls is made, and none returns. */
export interface Mortal {
  isDead: boolean;
}

export function mortalPorts(
  ports: ConsumerPorts<MemorySession>,
  mortal: Mortal,
): Partial<ConsumerPorts<MemorySession>> {
  const alive = <Result>(call: () => Promise<Result>): Promise<Result> =>
    mortal.isDead ? new Promise<never>(() => undefined) : call();
  const { parked, store, subscribers } = ports;
  return {
    store: { transact: (work) => alive(() => store.transact(work)) },
    parked: {
      claimDue: (request) => alive(() => parked.claimDue(request)),
      giveBack: (claimed) => alive(() => parked.giveBack(claimed)),
      behind: (places, limit) => alive(() => parked.behind(places, limit)),
      wake: (request) => alive(() => parked.wake(request)),
    },
    subscribers: subscribers.map((subscriber) => ({
      receive: (request) => alive(() => subscriber.receive(request)),
      acknowledge: (deliveries) => alive(() => subscriber.acknowledge(deliveries)),
      extend: (deliveries, invisibleMs) => alive(() => subscriber.extend(deliveries, invisibleMs)),
    })),
  };
}

/** What is in whose hands, as the database would keep it. */
export function startedRecords(): StartedRecords {
  const records = new Map<string, { owner: string; events: readonly string[] }>();
  return {
    begin: ({ events, loop, owner }) => {
      records.set(`${owner} ${loop}`, { owner, events });
      const elsewhere = [...records.values()].filter((record) => record.owner !== owner);
      return Promise.resolve(events.filter((event) => elsewhere.some((record) => record.events.includes(event))));
    },
  };
}
