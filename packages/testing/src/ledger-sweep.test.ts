import type { OutboxRow } from '@nightporter/contracts';
import { NightporterError, aggregateVersion, epoch } from '@nightporter/protocol';
import type { ConsumerEvent, GroupProducer } from '@nightporter/consumer';
import { describe, expect, it } from 'vitest';
import { keyFor, send, settled, startMember, stopMember, type Member } from './consumer-engine.support.js';
import { GROUP, commitOrders, createLedgerWorld, mark, publish, startSweeper } from './ledger-sweep.support.js';
import type { MemoryWorld } from './memory/index.js';

function toldOf(told: readonly ConsumerEvent[], kind: ConsumerEvent['kind']): readonly ConsumerEvent[] {
  return told.filter((event) => event.kind === kind);
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

describe('the watermark', () => {
  it('follows what is settled or parked up to the lag, and makes the group live', async () => {
    const world = await createLedgerWorld();
    await publish(world, commitOrders(world, 'a', 3), { isLost: () => true });
    const member = startSweeper(world, { options: { ledgerPageMax: 1 } });
    await world.clock.advance(40_000);
    const entry = world.database.groups.groups.get(GROUP);
    expect(entry?.state).toBe('live');
    expect(entry?.watermarkMs).toBeGreaterThan(world.clock.now() - 21_000);
    expect(entry?.watermarkMs).toBeLessThanOrEqual(world.clock.now() - 10_000);
    await stopMember(world, member);
  });

  it('stays where it is while the group’s database takes nothing', async () => {
    const world = await createLedgerWorld();
    await mark(world, commitOrders(world, 'a', 1)[0]!);
    const publishedAtMs = world.clock.now();
    let isDown = true;
    const member = startSweeper(world, {
      ports: ({ store }) => ({
        store: {
          transact: (work) =>
            store.transact((transaction) =>
              work({
                session: transaction.session,
                load: (events) => transaction.load(events),
                save: (changes) =>
                  isDown
                    ? Promise.reject(new NightporterError('NP_STORE_UNAVAILABLE', 'down'))
                    : transaction.save(changes),
              }),
            ),
        },
      }),
    });
    await world.clock.advance(120_000);
    expect(world.database.groups.groups.get(GROUP)?.watermarkMs).toBeLessThan(publishedAtMs);
    isDown = false;
    await world.clock.advance(60_000);
    expect(member.effects()).toEqual(['a-1']);
    expect(world.database.groups.groups.get(GROUP)?.watermarkMs).toBeGreaterThan(publishedAtMs);
    await stopMember(world, member);
  });

  it('leaves room behind itself for marks that show late', async () => {
    const world = await createLedgerWorld();
    const [row] = commitOrders(world, 'a', 1);
    let isVisible = false;
    await mark(world, row!);
    const member = startSweeper(world, {
      ports: ({ ledgerSweep }) => ({
        ledgerSweep: {
          ...ledgerSweep!,
          producers: ledgerSweep!.producers.map(({ ledger, registry }) => ({
            registry,
            ledger: {
              readVersions: (places) => ledger.readVersions(places),
              async readPublished(request) {
                const page = await ledger.readPublished(request);
                return isVisible ? page : { ...page, rows: [] };
              },
            },
          })),
        },
      }),
    });
    await world.clock.advance(40_000);
    expect(member.effects()).toEqual([]);
    isVisible = true;
    await world.clock.advance(12_000);
    expect(member.effects()).toEqual(['a-1']);
    await stopMember(world, member);
  });
});

describe('the members of a group', () => {
  it('walk one at a time, and another goes on when one is gone', async () => {
    const world = await createLedgerWorld();
    const first = startSweeper(world);
    await world.clock.advance(1_000);
    const owner = world.database.groups.groups.get(GROUP)?.sweeper?.owner;
    const second = startSweeper(world);
    await world.clock.advance(30_000);
    expect(world.database.groups.groups.get(GROUP)?.sweeper?.owner).toBe(owner);
    await stopMember(world, first);
    expect(world.database.groups.groups.get(GROUP)?.sweeper?.owner).not.toBe(owner);
    await mark(world, commitOrders(world, 'a', 1)[0]!);
    await world.clock.advance(25_000);
    expect(second.effects()).toEqual(['a-1']);
    await stopMember(world, second);
  });

  it('go on consuming while the producer’s database is away', async () => {
    const world = await createLedgerWorld();
    const fail = (): Promise<never> => Promise.reject(new NightporterError('NP_STORE_UNAVAILABLE', 'away'));
    const member = startSweeper(world, {
      ports: ({ ledgerSweep }) => ({
        ledgerSweep: {
          gaps: ledgerSweep!.gaps,
          producers: [
            {
              ledger: { readPublished: fail, readVersions: fail },
              registry: { standing: fail, claim: fail, advance: fail, release: fail },
            },
          ],
        },
      }),
    });
    send(world, { aggregateId: 'gap', version: 2 });
    await world.clock.advance(30_000);
    await publish(world, commitOrders(world, 'a', 1));
    await settled(world);
    expect(member.effects()).toEqual(['a-1']);
    expect(member.consumer.snapshot()).toMatchObject({ paused: false, databaseFailures: 0 });
    expect(member.consumer.snapshot().ledgerFailures).toBeGreaterThan(2);
    await stopMember(world, member);
  });

  it('leave to the broker what waits in a backlog there', async () => {
    const world = await createLedgerWorld();
    await mark(world, commitOrders(world, 'a', 1)[0]!);
    const member = startSweeper(world, { options: { receiveMax: 1, ledgerBacklogLagMs: 60_000 } });
    for (let second = 1; second <= 40; second += 1) {
      send(world, { aggregateId: `busy-${second}`, version: 1 });
      await world.clock.advance(1_000);
    }
    expect(member.effects()).not.toContain('a-1');
    await world.clock.advance(25_000);
    expect(member.effects()).toContain('a-1');
    await stopMember(world, member);
  });

  it('are told when nobody registered the group', async () => {
    const world = await createLedgerWorld();
    world.database.groups.groups.delete(GROUP);
    const member = startSweeper(world);
    await world.clock.advance(1_000);
    expect(toldOf(member.told, 'unregistered')).toHaveLength(1);
    await stopMember(world, member);
  });
});

describe('a version that was settled before its inbox record expired', () => {
  it('is a duplicate when it is the ledger’s event, and a conflict when it is another', async () => {
    const world = await createLedgerWorld();
    const rows = commitOrders(world, 'a', 2);
    await publish(world, rows);
    const member = startSweeper(world);
    await world.clock.advance(1_000);
    expect(member.effects()).toEqual(['a-1', 'a-2']);
    world.group(GROUP).expireInbox(0);
    await publish(world, rows.slice(0, 1));
    send(world, { aggregateId: 'a', version: 2, id: 'forged' });
    await world.clock.advance(1_000);
    expect(toldOf(member.told, 'duplicate')).toHaveLength(1);
    expect(world.group(GROUP).asides()).toMatchObject([{ id: 'forged', failure: { code: 'NP_VERSION_CONFLICT' } }]);
    expect(member.effects()).toEqual(['a-1', 'a-2']);
    await stopMember(world, member);
  });

  it('is a duplicate when nobody knows it any more', async () => {
    const world = await createLedgerWorld();
    const rows = commitOrders(world, 'a', 1);
    await publish(world, rows);
    const member = startMember(world);
    await world.clock.advance(1_000);
    world.group(GROUP).expireInbox(0);
    await publish(world, rows);
    await world.clock.advance(1_000);
    expect(toldOf(member.told, 'duplicate')).toHaveLength(1);
    await stopMember(world, member);
  });
});

describe('a position that was lost after its inbox records had expired', () => {
  const options = { inboxRetentionMs: 60_000, brokerRetentionMs: 30_000 };

  /** A group that has settled two events, and now has nothing to show for it. */
  async function forgetful(): Promise<{ world: MemoryWorld; member: Member; rows: readonly OutboxRow[] }> {
    const world = await createLedgerWorld();
    const rows = commitOrders(world, 'a', 3);
    await publish(world, rows.slice(0, 2));
    const member = startSweeper(world, { options });
    await world.clock.advance(40_000);
    expect(member.effects()).toEqual(['a-1', 'a-2']);
    world.group(GROUP).expireInbox(0);
    world.group(GROUP).losePosition(keyFor('a'));
    return { world, member, rows };
  }

  it.each(['the broker brings', 'a gap asks for'])(
    'makes each event that %s a dead letter, not a second effect',
    async (how) => {
      const { world, member, rows } = await forgetful();
      if (how === 'the broker brings') await publish(world, rows);
      else await publish(world, rows.slice(2));
      await world.clock.advance(15_000);
      expect(member.effects()).toEqual(['a-1', 'a-2']);
      expect(member.parked()).toHaveLength(3);
      const lost = member.parked().filter(({ failure }) => failure?.code === 'NP_POSITION_LOST');
      expect(lost.map(({ event, state }) => [event.envelope.eventId, state]).sort()).toEqual([
        ['a-1', 'dead'],
        ['a-2', 'dead'],
      ]);
      for (const version of [1, 2]) world.group(GROUP).skipDead(keyFor('a'), aggregateVersion(version));
      await world.clock.advance(1_000);
      expect(member.effects()).toEqual(['a-1', 'a-2', 'a-3']);
      expect(member.parked()).toEqual([]);
      await stopMember(world, member);
    },
  );

  it('is no loss in a group that is not live, whatever its watermark says', async () => {
    const { world, member, rows } = await forgetful();
    const { groups } = world.database.groups;
    groups.set(GROUP, { ...groups.get(GROUP)!, state: 'bootstrapping', floorMs: Number.MAX_SAFE_INTEGER });
    await publish(world, rows.slice(0, 2));
    await world.clock.advance(1_000);
    expect(member.parked()).toEqual([]);
    expect(member.effects()).toEqual(['a-1', 'a-2', 'a-1', 'a-2']);
    await stopMember(world, member);
  });

  it('is no loss while the group catches up with its history', async () => {
    const world = await createLedgerWorld();
    await publish(world, commitOrders(world, 'a', 2), { isLost: () => true });
    await world.clock.advance(100_000);
    const member = startSweeper(world, { options });
    await world.clock.advance(15_000);
    expect(member.effects()).toEqual(['a-1', 'a-2']);
    await stopMember(world, member);
  });

  it('is no loss where the group has not come so far yet, however old the event is', async () => {
    const world = await createLedgerWorld();
    const member = startSweeper(world, { options });
    await world.clock.advance(30_000);
    expect(world.database.groups.groups.get(GROUP)?.state).toBe('live');
    await stopMember(world, member);
    await publish(world, commitOrders(world, 'a', 2), { isLost: () => true });
    await world.clock.advance(100_000);
    const later = startSweeper(world, { options });
    await world.clock.advance(15_000);
    expect(later.effects()).toEqual(['a-1', 'a-2']);
    await stopMember(world, later);
  });
});
