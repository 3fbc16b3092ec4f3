import type { OutboxRow } from '@nightporter/contracts';
import { NightporterError, aggregateVersion } from '@nightporter/protocol';
import type { ConsumerEvent } from '@nightporter/consumer';
import { describe, expect, it } from 'vitest';
import { keyFor, send, startMember, stopMember, type Member } from './consumer-engine.support.js';
import { GROUP, commitOrders, createLedgerWorld, publish, startSweeper } from './ledger-sweep.support.js';
import type { MemoryWorld } from './memory/index.js';

function toldOf(told: readonly ConsumerEvent[], kind: ConsumerEvent['kind']): readonly ConsumerEvent[] {
  return told.filter((event) => event.kind === kind);
}

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

  it('is a duplicate, and holds nobody up, where the ledger cannot be read and never will be', async () => {
    const world = await createLedgerWorld();
    const rows = commitOrders(world, 'a', 2);
    await publish(world, rows.slice(0, 1));
    const fail = (): Promise<never> => Promise.reject(new NightporterError('NP_ARCHIVE_FAILED', 'no way to the files'));
    const member = startSweeper(world, {
      ports: ({ ledgerSweep }) => ({
        ledgerSweep: {
          ...ledgerSweep!,
          producers: ledgerSweep!.producers.map((producer) => ({
            ...producer,
            ledger: { readPublished: fail, readVersions: fail },
          })),
        },
      }),
    });
    await world.clock.advance(1_000);
    expect(member.effects()).toEqual(['a-1']);
    world.group(GROUP).expireInbox(0);
    await publish(world, rows);
    await world.clock.advance(1_000);
    expect(toldOf(member.told, 'duplicate')).toHaveLength(1);
    expect(toldOf(member.told, 'ledger-unavailable')).toContainEqual(
      expect.objectContaining({ operation: 'forgotten' }),
    );
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
