import type { ConsumerEvent } from '@nightporter/consumer';
import { NightporterError } from '@nightporter/protocol';
import { describe, expect, it } from 'vitest';
import { TOPIC, keyFor, send, settled, stopMember, type Member, type MemberSetup } from './consumer-engine.support.js';
import { GROUP, commitOrders, createLedgerWorld, mark, publish, startSweeper } from './ledger-sweep.support.js';
import type { MemoryWorld } from './memory/index.js';

const DEAD_LETTERS = `%DLQ%${GROUP}`;
const NEVER_MS = 3_600_000;

/** A member to which only the broker's dead letters can bring what the topic does not. */
function startReader(world: MemoryWorld, setup: MemberSetup = {}): Member {
  return startSweeper(world, {
    ...setup,
    options: { ledgerLagMs: NEVER_MS, gapWaitMs: NEVER_MS, ...setup.options },
    ports: (ports) => ({
      brokerDeadLetters: world.subscriber({ group: GROUP, topic: DEAD_LETTERS }),
      ...setup.ports?.(ports),
    }),
  });
}

/** The broker gives up what the group has not received yet, and keeps it apart. */
function giveUp(world: MemoryWorld): void {
  for (let lost = 1; lost > 0;) {
    const messages = world.broker.topic(TOPIC).giveUp(GROUP, 10);
    for (const message of messages) world.broker.topic(DEAD_LETTERS).append(message);
    lost = messages.length;
  }
}

const backlog = (world: MemoryWorld): number => world.broker.topic(DEAD_LETTERS).backlogOf(GROUP);

function toldOf(told: readonly ConsumerEvent[], kind: ConsumerEvent['kind']): readonly ConsumerEvent[] {
  return told.filter((event) => event.kind === kind);
}

describe('what the broker has given up', () => {
  it('is applied in order from the ledger, counted, and acknowledged', async () => {
    const world = await createLedgerWorld();
    await publish(world, commitOrders(world, 'a', 2));
    giveUp(world);
    const member = startReader(world);
    await world.clock.advance(5_000);
    expect(member.effects()).toEqual(['a-1', 'a-2']);
    expect(member.consumer.snapshot()).toMatchObject({ brokerDeadLetters: 2, received: 0 });
    expect(backlog(world)).toBe(0);
    await stopMember(world, member);
  });

  it('is applied as the ledger has it, though its message has been altered', async () => {
    const world = await createLedgerWorld();
    await publish(world, commitOrders(world, 'a', 1), { isLost: () => true });
    send(world, { aggregateId: 'a', version: 1, digest: 'altered' });
    giveUp(world);
    const member = startReader(world);
    await world.clock.advance(5_000);
    expect(member.effects()).toEqual(['a-1']);
    expect(member.parked()).toEqual([]);
    await stopMember(world, member);
  });

  it('has no second effect where it was settled, nor becomes a duplicate', async () => {
    const world = await createLedgerWorld();
    const rows = commitOrders(world, 'a', 1);
    await publish(world, rows);
    const member = startReader(world);
    await settled(world);
    const [copy] = world.broker.topic(TOPIC).messages();
    world.broker.topic(DEAD_LETTERS).append(copy!);
    await world.clock.advance(35_000);
    expect(member.effects()).toEqual(['a-1']);
    expect(member.inbox()).toMatchObject([{ duplicates: 0 }]);
    expect(member.consumer.snapshot()).toMatchObject({ brokerDeadLetters: 1 });
    expect(backlog(world)).toBe(0);
    await stopMember(world, member);
  });

  it('and the ledger does not have is judged like any other delivery, but runs as a claim', async () => {
    const world = await createLedgerWorld();
    send(world, { aggregateId: 'ghost', version: 1 }, { aggregateId: 'late', version: 2 });
    giveUp(world);
    const attempts: number[] = [];
    const member = startReader(world, {
      handlers: {
        OrderPaid: ({ attempt }) => {
          attempts.push(attempt);
          return Promise.reject(new Error('poison'));
        },
      },
      options: { attemptsMax: 2, retryScheduleMs: [100] },
    });
    await world.clock.advance(5_000);
    expect(attempts).toEqual([1, 2]);
    expect(member.parked()).toMatchObject([
      { event: { aggregate: keyFor('ghost') }, state: 'dead', attempts: 2 },
      { event: { aggregate: keyFor('late') }, state: 'gap' },
    ]);
    expect(backlog(world)).toBe(0);
    await stopMember(world, member);
  });

  it('leaves its place to another event that the ledger has there, and is set aside', async () => {
    const world = await createLedgerWorld();
    const [row] = commitOrders(world, 'a', 1);
    await mark(world, row!);
    send(world, { aggregateId: 'a', version: 1, id: 'impostor' });
    giveUp(world);
    const member = startReader(world, { options: { ledgerEveryMs: 600_000 } });
    await world.clock.advance(5_000);
    expect(member.effects()).toEqual(['a-1']);
    expect(world.group(GROUP).asides()).toMatchObject([{ id: 'impostor', failure: { code: 'NP_VERSION_CONFLICT' } }]);
    expect(member.parked()).toEqual([]);
    expect(backlog(world)).toBe(0);
    await stopMember(world, member);
  });

  it('and nobody can read is set aside', async () => {
    const world = await createLedgerWorld();
    const body = new TextEncoder().encode('{');
    world.broker.topic(DEAD_LETTERS).append({ messageId: 'm', messageGroup: 'a', body, properties: {} });
    const member = startReader(world);
    await world.clock.advance(5_000);
    expect(world.group(GROUP).asides()).toMatchObject([{ messageId: 'm', failure: { code: 'NP_MESSAGE_UNREADABLE' } }]);
    expect(toldOf(member.told, 'broker-dead-letter')).toMatchObject([{ messageId: 'm', event: null }]);
    expect(backlog(world)).toBe(0);
    await stopMember(world, member);
  });
});

describe('while the ledger cannot be read', () => {
  it('nothing of the broker’s dead letters is acknowledged, and they are read once it can', async () => {
    const world = await createLedgerWorld();
    await publish(world, commitOrders(world, 'a', 1));
    giveUp(world);
    let isAway = true;
    const member = startReader(world, {
      options: { invisibleMs: 1_000 },
      ports: ({ ledgerSweep }) => ({
        ledgerSweep: {
          ...ledgerSweep!,
          producers: ledgerSweep!.producers.map(({ ledger, registry }) => ({
            registry,
            ledger: {
              readPublished: (request) => ledger.readPublished(request),
              readVersions: (places) =>
                isAway
                  ? Promise.reject(new NightporterError('NP_STORE_UNAVAILABLE', 'away'))
                  : ledger.readVersions(places),
            },
          })),
        },
      }),
    });
    await world.clock.advance(40_000);
    expect(toldOf(member.told, 'broker-dead-letters-unavailable').length).toBeGreaterThan(0);
    expect({ backlog: backlog(world), effects: member.effects() }).toEqual({ backlog: 1, effects: [] });
    isAway = false;
    await world.clock.advance(35_000);
    expect({ backlog: backlog(world), effects: member.effects() }).toEqual({ backlog: 0, effects: ['a-1'] });
    await stopMember(world, member);
  });
});
