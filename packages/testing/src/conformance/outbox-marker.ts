import type { OutboxRow } from '@nightporter/contracts';
import type { OutboxReader } from '@nightporter/relay';
import { describe, expect, it } from 'vitest';
import { failed, published, signed, target, type ReaderFixture } from './outbox-reader.js';

export interface PublicationRecorded {
  readonly publishedAtMs: number | null;
  readonly messageId: string | null;
  readonly form: string | null;
}

export interface MarkerFixture extends ReaderFixture {
  /** What the row's `publishedAt` and `publication` say. */
  readonly publicationOf: (row: OutboxRow) => Promise<PublicationRecorded>;
}

/** Every marker of the outbox keeps to this. The fixture brings fresh outboxes for each test. */
export function outboxMarkerConformance(name: string, makeFixture: () => Promise<MarkerFixture>): void {
  describe(`${name} as a marker of the outbox`, () => {
    it('marks rows published and records where they went', async () => {
      const { commit, marker, reader, publicationOf } = await makeFixture();
      const [row] = await commit([{ aggregateId: 'a' }]);
      expect(await marker.mark([published(row!, 'message 7')])).toEqual([{ kind: 'done' }]);
      expect(await statusOf(reader, row!)).toBe('PUBLISHED');
      const recorded = await publicationOf(row!);
      expect(recorded).toMatchObject({ messageId: 'message 7', form: 'original' });
      expect(recorded.publishedAtMs).not.toBeNull();
    });

    it('lets the first published mark stand when it is repeated', async () => {
      const { commit, marker, publicationOf } = await makeFixture();
      const [row] = await commit([{ aggregateId: 'a' }]);
      await marker.mark([published(row!, 'message 1')]);
      const first = await publicationOf(row!);
      expect(await marker.mark([published(row!, 'message 2')])).toEqual([{ kind: 'done' }]);
      expect((await publicationOf(row!)).publishedAtMs).toBe(first.publishedAtMs);
    });

    it('lets published win over every other state, whatever the revision', async () => {
      const { commit, marker, reader } = await makeFixture();
      const rows = await commit([{ aggregateId: 'a' }, { aggregateId: 'b' }]);
      await marker.mark([failed(rows[0]!, 'DEAD', 0), failed(rows[1]!, 'FAILED', 60_000)]);
      expect(await marker.mark(rows.map((row) => published(row)))).toEqual([{ kind: 'done' }, { kind: 'done' }]);
      expect(await statusOf(reader, rows[0]!)).toBe('PUBLISHED');
      expect(await statusOf(reader, rows[1]!)).toBe('PUBLISHED');
    });

    it('never overwrites published', async () => {
      const { commit, marker, reader } = await makeFixture();
      const [row] = await commit([{ aggregateId: 'a' }]);
      await marker.mark([published(row!)]);
      const current = (await reader.lookUp([row!])).get(row!.eventId) as OutboxRow;
      for (const sample of [row!, current]) {
        const outcomes = await marker.mark([
          failed(sample, 'DEAD', 0),
          { ...target(sample), kind: 'unanswered', revision: sample.revision },
        ]);
        expect(outcomes[0]).toEqual({ kind: 'refused', status: 'PUBLISHED' });
        expect(outcomes[1]).toEqual({ kind: 'refused', status: 'PUBLISHED' });
      }
      expect(await statusOf(reader, row!)).toBe('PUBLISHED');
    });

    it('refuses a failed mark once the row has changed since it was read', async () => {
      const { commit, marker, reader, actions } = await makeFixture();
      const [row] = await commit([{ aggregateId: 'a' }]);
      await marker.mark([failed(row!, 'DEAD', 0)]);
      await actions.retry(signed(row!));
      expect(await marker.mark([failed(row!, 'DEAD', 0)])).toEqual([{ kind: 'refused', status: 'PENDING' }]);
      expect(await statusOf(reader, row!)).toBe('PENDING');
    });

    it('calls a repeated failed mark done', async () => {
      const { commit, marker } = await makeFixture();
      const [row] = await commit([{ aggregateId: 'a' }]);
      expect(await marker.mark([failed(row!, 'FAILED', 60_000)])).toEqual([{ kind: 'done' }]);
      expect(await marker.mark([failed(row!, 'FAILED', 60_000)])).toEqual([{ kind: 'done' }]);
    });

    it('records a send without an answer, and raises the revision', async () => {
      const { commit, marker, reader } = await makeFixture();
      const [row] = await commit([{ aggregateId: 'a' }]);
      const mark = { ...target(row!), kind: 'unanswered', revision: row!.revision } as const;
      expect(await marker.mark([mark])).toEqual([{ kind: 'done' }]);
      expect(await marker.mark([mark])).toEqual([{ kind: 'done' }]);
      const read = (await reader.lookUp([row!])).get(row!.eventId);
      expect(read).toMatchObject({ unanswered: true, status: 'PENDING', revision: row!.revision + 1 });
    });

    it('answers many marks in their order, over both outboxes', async () => {
      const { commit, marker, remove } = await makeFixture();
      const rows = await commit(
        Array.from({ length: 40 }, (_, index) => ({
          aggregateId: `a${index}`,
          outbox: index % 2 === 0 ? 'first' : 'second',
        })),
      );
      await remove(rows[7]!.eventId);
      await marker.mark([failed(rows[11]!, 'FAILED', 60_000)]);
      const outcomes = await marker.mark(
        rows.map((row, index) =>
          index % 3 === 2 ? failed({ ...row, retryCount: 4 }, 'FAILED', 1_000) : published(row),
        ),
      );
      expect(outcomes).toEqual(
        rows.map((_, index) => {
          if (index === 7) return { kind: 'missing' };
          return index === 11 ? { kind: 'refused', status: 'FAILED' } : { kind: 'done' };
        }),
      );
    });
  });
}

async function statusOf(reader: OutboxReader, row: OutboxRow): Promise<string> {
  const found = (await reader.lookUp([row])).get(row.eventId);
  return typeof found === 'object' ? found.status : (found ?? 'not looked up');
}
