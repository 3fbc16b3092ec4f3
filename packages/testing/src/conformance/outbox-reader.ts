import type { OutboxRow } from '@nightporter/contracts';
import type {
  Mark,
  OutboxActionRequest,
  OutboxActions,
  OutboxMarker,
  OutboxReader,
  SweepCursor,
} from '@nightporter/relay';
import { ALL_SLOTS, aggregateKey, epoch, eventId, type EventId } from '@nightporter/protocol';
import { describe, expect, it } from 'vitest';
import type { OutboxFixture } from './outbox-fixture.js';

export interface ReaderFixture extends OutboxFixture {
  readonly reader: OutboxReader;
  readonly marker: OutboxMarker;
  /** Moves a published row to the archive. */
  readonly archive: (eventId: EventId) => Promise<void>;
  /** Deletes a row, whatever its status. */
  readonly remove: (eventId: EventId) => Promise<void>;
  readonly actions: OutboxActions;
}

/** Every reader of the outbox keeps to this. The fixture brings fresh outboxes for each test. */
export function outboxReaderConformance(name: string, makeFixture: () => Promise<ReaderFixture>): void {
  describe(`${name} as a reader of the outbox`, () => {
    it('reads the unsettled rows of a slot page by page, each once, in the order of aggregate and version', async () => {
      const { commit, reader } = await makeFixture();
      const rows = await commit(
        ['b', 'a', 'b', 'a', 'b', 'a'].map((aggregateId, index) => ({
          aggregateId,
          outbox: index % 2 === 0 ? 'first' : 'second',
        })),
      );
      for (const slot of new Set(rows.map((row) => row.slot))) {
        const read = await readSlot(reader, slot, 2);
        const expected = rows.filter((row) => row.slot === slot);
        expect(ids(read)).toEqual(ids([...expected].sort(byAggregateAndVersion)));
      }
    });

    it('leaves published rows out, and keeps FAILED and DEAD ones in', async () => {
      const { commit, reader, marker } = await makeFixture();
      const rows = await commit(Array.from({ length: 4 }, () => ({ aggregateId: 'a' })));
      await marker.mark([published(rows[0]!), failed(rows[1]!, 'FAILED', 60_000), failed(rows[2]!, 'DEAD', 0)]);
      const read = await readSlot(reader, rows[0]!.slot, 10);
      expect(read.map((row) => [row.aggregateVersion, row.status])).toEqual([
        [2, 'FAILED'],
        [3, 'DEAD'],
        [4, 'PENDING'],
      ]);
    });

    it('tells how long a failed row has to wait by the database’s clock', async () => {
      const { commit, reader, marker } = await makeFixture();
      const [row] = await commit([{ aggregateId: 'a' }]);
      await marker.mark([failed(row!, 'FAILED', 60_000)]);
      const [read] = await readSlot(reader, row!.slot, 10);
      expect(read?.dueInMs).toBeGreaterThan(50_000);
      expect(read?.dueInMs).toBeLessThanOrEqual(60_000);
      expect(read).toMatchObject({ retryCount: 1, status: 'FAILED', revision: row!.revision + 1 });
    });

    it('reads the lowest unsettled versions of the asked aggregates', async () => {
      const { commit, reader, marker } = await makeFixture();
      const rows = await commit(['a', 'b', 'a', 'b', 'a', 'a', 'c'].map((aggregateId) => ({ aggregateId })));
      await marker.mark([published(rows[0]!)]);
      const lanes = ['a', 'b'].map((id) => laneOf(rows.find((row) => row.aggregateId === id)!));
      const read = await reader.readLanes(lanes, 2);
      expect(read.map((row) => [row.aggregateId, row.aggregateVersion])).toEqual([
        ['a', 2],
        ['a', 3],
        ['b', 1],
        ['b', 2],
      ]);
    });

    it('looks rows up whatever their status', async () => {
      const { commit, reader, marker, archive, remove } = await makeFixture();
      const rows = await commit(['a', 'b', 'c', 'd'].map((aggregateId) => ({ aggregateId })));
      await marker.mark([published(rows[0]!), published(rows[1]!)]);
      await archive(rows[1]!.eventId);
      await remove(rows[2]!.eventId);
      const unknown = { namespace: rows[0]!.namespace, eventId: eventId('00000000-0000-7000-8000-000000000000') };
      const found = await reader.lookUp([...rows, unknown]);
      expect(found.get(rows[0]!.eventId)).toMatchObject({ status: 'PUBLISHED', aggregateId: 'a' });
      expect(found.get(rows[1]!.eventId)).toBe('archived');
      expect(found.get(rows[2]!.eventId)).toBe('missing');
      expect(found.get(rows[3]!.eventId)).toEqual(rows[3]);
      expect(found.get(unknown.eventId)).toBe('missing');
    });

    it('tells of a skipped row that a tombstone is to be published', async () => {
      const { commit, reader, marker, actions } = await makeFixture();
      const [row] = await commit([{ aggregateId: 'a' }]);
      await marker.mark([failed(row!, 'DEAD', 0)]);
      await actions.skip(signed(row!));
      const [read] = await readSlot(reader, row!.slot, 10);
      expect(read).toMatchObject({ status: 'PENDING', form: 'tombstone', digest: row!.digest, payload: row!.payload });
    });

    it('finds nothing in an empty outbox', async () => {
      const { reader } = await makeFixture();
      for (const slot of ALL_SLOTS.slice(0, 3)) {
        expect(await reader.readUnsettled({ slot, after: null, limit: 10 })).toEqual([]);
      }
      expect(await reader.readLanes([], 10)).toEqual([]);
      expect(await reader.lookUp([])).toEqual(new Map());
    });
  });
}

export function published(row: OutboxRow, messageId = 'message 1'): Mark {
  return {
    ...target(row),
    kind: 'published',
    messageId,
    topic: row.topic,
    form: row.form,
    sinceCaptureMs: 5,
  };
}

export function failed(row: OutboxRow, status: 'FAILED' | 'DEAD', retryInMs: number): Mark {
  const { revision, retryCount } = row;
  return {
    ...target(row),
    kind: 'failed',
    revision,
    status,
    retryCount: retryCount + 1,
    retryInMs,
    error: 'no such thing',
  };
}

export function target({ namespace, eventId: id }: OutboxRow): Pick<Mark, 'namespace' | 'eventId' | 'relay' | 'epoch'> {
  return { namespace, eventId: id, relay: 'relay 1', epoch: epoch(3) };
}

export function signed({ namespace, eventId: id }: OutboxRow): OutboxActionRequest {
  return { namespace, eventId: id, by: 'operator', reason: 'a test' };
}

function laneOf(row: OutboxRow): Parameters<OutboxReader['readLanes']>[0][number] {
  return { namespace: row.namespace, aggregate: aggregateKey(row) };
}

async function readSlot(reader: OutboxReader, slot: OutboxRow['slot'], limit: number): Promise<OutboxRow[]> {
  const rows: OutboxRow[] = [];
  let after: SweepCursor | null = null;
  for (;;) {
    const page = await reader.readUnsettled({ slot, after, limit });
    expect(page.length).toBeLessThanOrEqual(limit);
    if (page.length === 0) return rows;
    rows.push(...page);
    after = page.at(-1) ?? null;
  }
}

function byAggregateAndVersion(left: OutboxRow, right: OutboxRow): number {
  const leftKey = `${left.namespace} ${left.aggregateId}`;
  const rightKey = `${right.namespace} ${right.aggregateId}`;
  if (leftKey !== rightKey) return leftKey < rightKey ? -1 : 1;
  return left.aggregateVersion - right.aggregateVersion;
}

function ids(rows: readonly OutboxRow[]): readonly string[] {
  return rows.map((row) => row.eventId);
}
