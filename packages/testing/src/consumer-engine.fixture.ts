import type { Handlers } from '@nightporter/consumer';
import { afterEach, beforeEach } from 'vitest';
import {
  TOPIC,
  keyFor,
  startMember,
  startedRecords,
  stopMember,
  type Member,
  type MemberSetup,
  type SentEvent,
} from './consumer-engine.support.js';
import { createMemoryWorld, type MemorySession, type MemoryWorld } from './memory/index.js';

/** Fresh for each test of the file that imports it. */
export let world: MemoryWorld;
let members: Member[];

beforeEach(() => {
  world = createMemoryWorld({ queues: 1 });
  members = [];
});

afterEach(async () => {
  for (const member of members) if (member.consumer.snapshot().state === 'running') await stopMember(world, member);
});

/** Starts a member that is stopped after the test. */
export function start(setup: MemberSetup = {}): Member {
  const member = startMember(world, setup);
  members.push(member);
  return member;
}

/** A handler that fails for the events in `poison`, and leaves their id as effect for all others. */
export function failingFor(poison: Set<string>, runs: string[] = []): Handlers<MemorySession> {
  return {
    OrderPaid: async ({ event, session }) => {
      runs.push(event.eventId);
      await session.effect(event.eventId);
      if (poison.has(event.eventId)) throw new Error(`poison ${event.eventId}`);
    },
  };
}

/** The events 1 to `last` of an aggregate. */
export const history = (aggregateId: string, last: number): SentEvent[] =>
  Array.from({ length: last }, (_, index) => ({ aggregateId, version: index + 1 }));

/** Where the group is with an aggregate. */
export const position = (aggregateId: string, group = 'billing'): unknown =>
  world.group(group).positionOf(keyFor(aggregateId)).position;

/** Whether the broker has nothing for the group that is not in hand. */
export const isDrained = (group = 'billing'): boolean =>
  world.broker.topic(TOPIC).receive({ group, max: 1, invisibleMs: 1 }).length === 0;

/** How many events each transaction of the group has settled, without those that settled none. */
export function commits(): number[] {
  const counts: number[] = [];
  const group = world.group('billing');
  const told = group.onCommitted;
  group.onCommitted = (commit) => {
    told(commit);
    if (commit.settled.length > 0) counts.push(commit.settled.length);
  };
  return counts;
}

/** A member that keeps record of what it starts, so that parked events may run together. */
export function startDraining(
  poison: Set<string>,
  { started = startedRecords(), runs = [] as string[], commitMax = 32 } = {},
): Member {
  return start({
    handlers: failingFor(poison, runs),
    options: { retryScheduleMs: [1_000], commitMax },
    ports: () => ({ started }),
  });
}

/** Makes what is parked as its aggregate's first version due at once, as if nobody had tried it. */
export async function makeDueUntried(): Promise<void> {
  const events = world
    .group('billing')
    .parked()
    .map(({ event }) => event);
  const first = events.filter(({ envelope }) => envelope.aggregateVersion === 1);
  const parked = { state: 'retry', attempts: 0, retryInMs: 0, failure: null } as const;
  await world.groupStores('billing').store.transact(async (transaction) => {
    await transaction.load(events);
    await transaction.save(first.map((event) => ({ kind: 'park', event, ...parked })));
  });
}
