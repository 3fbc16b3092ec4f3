import { epoch } from '@nightporter/protocol';
import type { ConsumerEvent, GroupProducer } from '@nightporter/consumer';
import { describe, expect, it } from 'vitest';
import { keyFor, send, settled, stopMember } from './consumer-engine.support.js';
import { GROUP, commitOrders, createLedgerWorld, mark, publish, startSweeper } from './ledger-sweep.support.js';

function toldOf(told: readonly ConsumerEvent[], kind: ConsumerEvent['kind']): readonly ConsumerEvent[] {
  return told.filter((event) => event.kind === kind);
}

const by = { relay: 'relay', epoch: epoch(1) };

function withDigest({ ledger, registry }: GroupProducer, digest: string): GroupProducer {
  return {
    registry,
    ledger: {
      readPublished: (request) => ledger.readPublished(request),
      readVersions: async (places) =>
        (await ledger.readVersions(places)).map((answer) =>
          answer.kind === 'published' ? { ...answer, event: { ...answer.event, digest } } : answer,
        ),
    },
  };
}

describe('what the broker has lost', () => {
  it('is applied although its aggregate fell silent, once the lag is over', async () => {
    const world = await createLedgerWorld();
    await publish(world, commitOrders(world, 'a', 2), { isLost: () => true });
    const member = startSweeper(world);
    await world.clock.advance(9_000);
    expect(member.effects()).toEqual([]);
    await world.clock.advance(12_000);
    expect(member.effects()).toEqual(['a-1', 'a-2']);
    await stopMember(world, member);
  });

  it('is asked for as soon as its gap is old enough, and applied in its order', async () => {
    const world = await createLedgerWorld();
    await publish(world, commitOrders(world, 'a', 4), { isLost: ({ aggregateVersion: v }) => v === 2 || v === 3 });
    const member = startSweeper(world, { options: { ledgerLagMs: 3_600_000 } });
    await world.clock.advance(4_900);
    expect(member.effects()).toEqual(['a-1']);
    await world.clock.advance(3_000);
    expect(member.effects()).toEqual(['a-1', 'a-2', 'a-3', 'a-4']);
    await stopMember(world, member);
  });

  it('is applied once, though its message comes after all', async () => {
    const world = await createLedgerWorld();
    const rows = commitOrders(world, 'a', 1);
    await mark(world, rows[0]!);
    const member = startSweeper(world);
    await world.clock.advance(25_000);
    expect(member.effects()).toEqual(['a-1']);
    await publish(world, rows);
    await settled(world);
    expect(member.effects()).toEqual(['a-1']);
    expect(member.inbox()).toMatchObject([{ duplicates: 1 }]);
    await stopMember(world, member);
  });

  it('is taken in the form that was published: a skipped event as its tombstone', async () => {
    const world = await createLedgerWorld();
    const [row] = commitOrders(world, 'a', 1);
    const failure = { status: 'DEAD', retryCount: 1, retryInMs: 0, error: 'refused' } as const;
    const target = { namespace: row!.namespace, eventId: row!.eventId, revision: row!.revision } as const;
    await world.relayStores().marker.mark([{ kind: 'failed', ...target, ...by, ...failure }]);
    world.database.outbox.skipDead(row!.eventId);
    await mark(world, { ...row!, form: 'tombstone' });
    const member = startSweeper(world);
    await world.clock.advance(25_000);
    expect(member.inbox()).toMatchObject([{ eventId: 'a-1', outcome: 'skipped' }]);
    await stopMember(world, member);
  });

  it('is a dead letter when the ledger’s row is not what was written', async () => {
    const world = await createLedgerWorld();
    const [row] = commitOrders(world, 'a', 1);
    await mark(world, row!);
    const member = startSweeper(world, {
      ports: (ports) => ({
        ledgerSweep: {
          ...ports.ledgerSweep!,
          producers: ports.ledgerSweep!.producers.map((producer) => withDigest(producer, 'another')),
        },
      }),
    });
    await world.clock.advance(25_000);
    expect(member.effects()).toEqual([]);
    expect(member.parked()).toMatchObject([{ state: 'dead', failure: { code: 'NP_DIGEST_MISMATCH' } }]);
    await stopMember(world, member);
  });

  it('is run as a claim, so that an event that ends its process is charged', async () => {
    const world = await createLedgerWorld();
    await mark(world, commitOrders(world, 'a', 1)[0]!);
    const attempts: number[] = [];
    const member = startSweeper(world, {
      handlers: {
        OrderPaid: ({ attempt }) => {
          attempts.push(attempt);
          return Promise.reject(new Error('poison'));
        },
      },
      options: { attemptsMax: 2, retryScheduleMs: [100] },
    });
    await world.clock.advance(30_000);
    expect(attempts).toEqual([1, 2]);
    expect(member.parked()).toMatchObject([{ state: 'dead', attempts: 2 }]);
    await stopMember(world, member);
  });
});

describe('a place that is taken by what was not written', () => {
  it.each(['forged', 'a-1'])('is given to the published event, though the message claims to be %s', async (id) => {
    const world = await createLedgerWorld();
    const member = startSweeper(world);
    send(world, { aggregateId: 'a', version: 1, id, digest: 'f00' });
    await settled(world);
    expect(member.parked()).toMatchObject([{ state: 'dead', failure: { code: 'NP_DIGEST_MISMATCH' } }]);
    await publish(world, commitOrders(world, 'a', 1), { isLost: () => true });
    await world.clock.advance(25_000);
    expect(member.effects()).toEqual(['a-1']);
    expect(world.group(GROUP).asides()).toMatchObject([{ failure: { code: 'NP_DIGEST_MISMATCH' } }]);
    await stopMember(world, member);
  });
});

describe('a version that cannot be had', () => {
  it('is explained once, and holds its own aggregate only', async () => {
    const world = await createLedgerWorld();
    send(world, { aggregateId: 'ghost', version: 2 });
    commitOrders(world, 'waiting', 1);
    send(world, { aggregateId: 'waiting', version: 2 });
    await publish(world, commitOrders(world, 'healthy', 1));
    const member = startSweeper(world);
    await world.clock.advance(40_000);
    expect(toldOf(member.told, 'version-unavailable')).toEqual([
      { kind: 'version-unavailable', aggregate: keyFor('ghost'), version: 1, reason: 'not-committed' },
      { kind: 'version-unavailable', aggregate: keyFor('waiting'), version: 1, reason: 'unpublished' },
    ]);
    expect(member.effects()).toEqual(['healthy-1']);
    await stopMember(world, member);
  });

  it('is told again when the reason changes: dead in the relay, then deleted', async () => {
    const world = await createLedgerWorld();
    const [row] = commitOrders(world, 'a', 2);
    send(world, { aggregateId: 'a', version: 2 });
    const failure = { status: 'DEAD', retryCount: 1, retryInMs: 0, error: 'refused' } as const;
    const target = { namespace: row!.namespace, eventId: row!.eventId, revision: row!.revision } as const;
    await world.relayStores().marker.mark([{ kind: 'failed', ...target, ...by, ...failure }]);
    const member = startSweeper(world);
    await world.clock.advance(20_000);
    world.database.outbox.deleteRow(row!.eventId);
    await world.clock.advance(20_000);
    expect(toldOf(member.told, 'version-unavailable')).toMatchObject([{ reason: 'dead' }, { reason: 'deleted' }]);
    await stopMember(world, member);
  });
});
