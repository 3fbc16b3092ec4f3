import { eventId } from '@nightporter/protocol';
import { describe, expect, it } from 'vitest';
import { failed, published, signed, type ReaderFixture } from './outbox-reader.js';

/** Every store's operator actions keep to this. The fixture brings fresh outboxes for each test. */
export function outboxActionsConformance(name: string, makeFixture: () => Promise<ReaderFixture>): void {
  async function oneDeadRow() {
    const fixture = await makeFixture();
    const [row] = await fixture.commit([{ aggregateId: 'a' }]);
    await fixture.marker.mark([failed(row!, 'DEAD', 0)]);
    return { ...fixture, row: row!, read: async () => (await fixture.reader.lookUp([row!])).get(row!.eventId) };
  }

  describe(`${name} for the operators of an outbox`, () => {
    it('makes a DEAD row PENDING again on retry, uncharged and at a raised revision, in its original form', async () => {
      const { actions, row, read } = await oneDeadRow();
      expect(await actions.retry(signed(row))).toEqual({ kind: 'done', revision: row.revision + 2 });
      const changed = { status: 'PENDING', retryCount: 0, dueInMs: 0, revision: row.revision + 2 };
      const { digest, payload, unanswered } = row;
      expect(await read()).toMatchObject({ digest, payload, unanswered, ...changed });
    });

    it('makes a DEAD row PENDING again on skip, with a tombstone to be published', async () => {
      const { actions, row, read } = await oneDeadRow();
      expect(await actions.skip(signed(row))).toEqual({ kind: 'done', revision: row.revision + 2 });
      const changed = { status: 'PENDING', retryCount: 0, dueInMs: 0, revision: row.revision + 2, form: 'tombstone' };
      const { digest, payload, unanswered } = row;
      expect(await read()).toMatchObject({ digest, payload, unanswered, ...changed });
    });

    it('keeps the request for a tombstone when that is dead, and tried again', async () => {
      const { actions, marker, row, read } = await oneDeadRow();
      await actions.skip(signed(row));
      await marker.mark([failed({ ...row, revision: row.revision + 2 }, 'DEAD', 0)]);
      expect(await actions.retry(signed(row))).toMatchObject({ kind: 'done' });
      expect(await read()).toMatchObject({ status: 'PENDING', form: 'tombstone' });
    });

    it('refuses what is not DEAD, and leaves it as it is', async () => {
      const { actions, commit, marker, reader } = await makeFixture();
      const rows = await commit(['a', 'b', 'c'].map((aggregateId) => ({ aggregateId })));
      await marker.mark([published(rows[0]!), failed(rows[1]!, 'FAILED', 60_000)]);
      const before = await reader.lookUp(rows);
      for (const [index, status] of (['PUBLISHED', 'FAILED', 'PENDING'] as const).entries()) {
        expect(await actions.retry(signed(rows[index]!))).toEqual({ kind: 'refused', status });
        expect(await actions.skip(signed(rows[index]!))).toEqual({ kind: 'refused', status });
      }
      const after = await reader.lookUp(rows);
      for (const { eventId: id } of rows) {
        expect(after.get(id)).toMatchObject({ revision: (before.get(id) as { revision: number }).revision });
      }
    });

    it('says of a row that is not there that it is missing', async () => {
      const { actions, row } = await oneDeadRow();
      const request = { ...signed(row), eventId: eventId('00000000-0000-7000-8000-000000000000') };
      expect(await actions.retry(request)).toEqual({ kind: 'missing' });
      expect(await actions.skip(request)).toEqual({ kind: 'missing' });
    });

    it('lets one of many who decide at once have his way, whatever the others want', async () => {
      const { actions, row, read } = await oneDeadRow();
      const outcomes = await Promise.all(
        (['retry', 'skip', 'retry', 'skip'] as const).map((act) => actions[act](signed(row))),
      );
      expect(outcomes.filter(({ kind }) => kind === 'done')).toHaveLength(1);
      expect(outcomes.filter(({ kind }) => kind === 'refused')).toHaveLength(3);
      const isSkipped = outcomes.findIndex(({ kind }) => kind === 'done') % 2 === 1;
      const form = isSkipped ? 'tombstone' : 'original';
      expect(await read()).toMatchObject({ status: 'PENDING', revision: row.revision + 2, form });
    });

    it('loses against a send that succeeded after all', async () => {
      const { actions, marker, row, read } = await oneDeadRow();
      await Promise.all([actions.skip(signed(row)), marker.mark([published(row)])]);
      expect(await read()).toMatchObject({ status: 'PUBLISHED' });
      expect(await actions.retry(signed(row))).toEqual({ kind: 'refused', status: 'PUBLISHED' });
    });
  });
}
