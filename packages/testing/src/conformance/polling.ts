import type { OutboxRow } from '@nightporter/contracts';
import type { Mark, OutboxReader, Polling } from '@nightporter/relay';
import { ALL_SLOTS } from '@nightporter/protocol';
import { describe, expect, it } from 'vitest';
import { published, target, type ReaderFixture } from './outbox-reader.js';

/** The fixture's reader is that of `relay 1`, and claims stand for `claimMs`. */
export interface PollingFixture extends ReaderFixture {
  readonly polling: Polling;
  readonly claimMs: number;
  readonly passTime: (byMs: number) => Promise<void>;
}

/** Every outbox that can be polled keeps to this. The fixture brings fresh outboxes for each test. */
export function pollingConformance(name: string, makeFixture: () => Promise<PollingFixture>): void {
  describe(`${name} as an outbox that is polled`, () => {
    it('shows a relay’s own claim as PENDING, and the claim of another as PROCESSING with the time it has left', async () => {
      const { commit, marker, reader, claimMs } = await makeFixture();
      const [own, foreign] = await commit([{ aggregateId: 'a' }, { aggregateId: 'b' }]);
      expect(await marker.mark([claim(own!, 'relay 1'), claim(foreign!, 'relay 2')])).toEqual([DONE, DONE]);
      expect(await read(reader, own!)).toMatchObject({ status: 'PENDING', dueInMs: 0, revision: own!.revision + 1 });
      const shown = await read(reader, foreign!);
      expect(shown).toMatchObject({ status: 'PROCESSING', revision: foreign!.revision + 1 });
      expect(shown.dueInMs).toBeGreaterThan(0);
      expect(shown.dueInMs).toBeLessThanOrEqual(claimMs);
    });

    it('gives a row to one of many that claim it at once, and calls the repeat of a claim done', async () => {
      const { commit, marker } = await makeFixture();
      const [row] = await commit([{ aggregateId: 'a' }]);
      const claims = ['relay 1', 'relay 2', 'relay 3'].map((relay) => claim(row!, relay));
      const outcomes = (await Promise.all(claims.map((one) => marker.mark([one])))).flat();
      expect(outcomes.filter(({ kind }) => kind === 'done')).toHaveLength(1);
      expect(outcomes.filter(({ kind }) => kind === 'refused')).toHaveLength(2);
      const winner = claims[outcomes.findIndex(({ kind }) => kind === 'done')]!;
      expect(await marker.mark([winner])).toEqual([DONE]);
    });

    it('never lets a claim overwrite published, and lets published win over a claim', async () => {
      const { commit, marker, reader } = await makeFixture();
      const [first, second] = await commit([{ aggregateId: 'a' }, { aggregateId: 'b' }]);
      await marker.mark([published(first!)]);
      const current = await read(reader, first!);
      expect(await marker.mark([claim(current, 'relay 2')])).toEqual([{ kind: 'refused', status: 'PUBLISHED' }]);
      await marker.mark([claim(second!, 'relay 2')]);
      expect(await marker.mark([published(second!)])).toEqual([DONE]);
      expect(await read(reader, second!)).toMatchObject({ status: 'PUBLISHED' });
    });

    it('shows a claim that is too old as PENDING, free for another', async () => {
      const { commit, marker, reader, claimMs, passTime } = await makeFixture();
      const [row] = await commit([{ aggregateId: 'a' }]);
      await marker.mark([claim(row!, 'relay 2')]);
      await passTime(claimMs + 100);
      const shown = await read(reader, row!);
      expect(shown).toMatchObject({ status: 'PENDING', dueInMs: 0 });
      expect(await marker.mark([claim(shown, 'relay 1')])).toEqual([DONE]);
    });

    it('takes the claims of others back, of the asked slots only', async () => {
      const { commit, marker, polling, reader } = await makeFixture();
      const [own, foreign, other] = await commit(['a', 'b', 'c', 'd'].map((aggregateId) => ({ aggregateId })));
      await marker.mark([claim(own!, 'relay 1'), claim(foreign!, 'relay 2'), claim(other!, 'relay 2')]);
      const slots = ALL_SLOTS.filter((slot) => slot !== other!.slot);
      expect(await polling.takeBack({ slots, relay: 'relay 1' })).toBe(1);
      expect(await polling.takeBack({ slots, relay: 'relay 1' })).toBe(0);
      expect(await read(reader, foreign!)).toMatchObject({ status: 'PENDING', revision: foreign!.revision + 2 });
      expect(await read(reader, own!)).toMatchObject({ revision: own!.revision + 1 });
      expect(await read(reader, other!)).toMatchObject({ status: 'PROCESSING' });
      expect(await marker.mark([claim(foreign!, 'relay 2')])).toEqual([{ kind: 'refused', status: 'PENDING' }]);
    });

    it('tells which slots have something to read, in any outbox', async () => {
      const { commit, marker, polling } = await makeFixture();
      expect(await polling.busySlots(ALL_SLOTS)).toEqual([]);
      const [first, second] = await commit([{ aggregateId: 'a' }, { aggregateId: 'b', outbox: 'second' }]);
      expect(new Set(await polling.busySlots(ALL_SLOTS))).toEqual(new Set([first!.slot, second!.slot]));
      expect(await polling.busySlots(ALL_SLOTS.filter((slot) => slot !== first!.slot))).toEqual([second!.slot]);
      await marker.mark([published(first!)]);
      expect(await polling.busySlots(ALL_SLOTS)).toEqual([second!.slot]);
    });
  });
}

const DONE = { kind: 'done' } as const;

function claim(row: OutboxRow, relay: string): Mark {
  return { ...target(row), kind: 'claimed', relay, revision: row.revision };
}

async function read(reader: OutboxReader, row: OutboxRow): Promise<OutboxRow> {
  const found = (await reader.lookUp([row])).get(row.eventId);
  if (typeof found !== 'object') throw new Error(`${row.eventId} is ${found ?? 'not looked up'}`);
  return found;
}
