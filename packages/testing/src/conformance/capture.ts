import type { Capture, CaptureStream } from '@nightporter/relay';
import { ALL_SLOTS, NightporterError, type ResumeToken } from '@nightporter/protocol';
import type { OutboxRow } from '@nightporter/contracts';
import { describe, expect, it } from 'vitest';
import type { OutboxFixture } from './outbox-fixture.js';

export interface CaptureFixture extends OutboxFixture {
  readonly capture: Capture;
  /** A token that this database never gave. */
  readonly unknownToken: ResumeToken;
  /** Drops the outbox `first` and creates it again, empty. */
  readonly dropFirstOutbox: () => Promise<void>;
}

const READ_LIMIT = 20;

/** Every capture keeps to this. The fixture brings fresh outboxes for each test. */
export function captureConformance(name: string, makeFixture: () => Promise<CaptureFixture>): void {
  describe(`${name} as a capture`, () => {
    it('delivers what commits after a fresh stream was opened, in commit order', async () => {
      const { capture, commit } = await makeFixture();
      await commit([{ aggregateId: 'early' }]);
      const stream = await capture.open({ after: null, slots: ALL_SLOTS });
      const first = await commit([{ aggregateId: 'a' }, { aggregateId: 'b' }]);
      const second = await commit([{ aggregateId: 'a' }, { aggregateId: 'c', outbox: 'second' }]);
      const read = await readRows(stream, 4);
      expect(read.rows.map((row) => row.eventId)).toEqual([...first, ...second].map((row) => row.eventId));
      await stream.close();
    });

    it('brings rows whole: what it captures equals what the outbox holds', async () => {
      const { capture, commit } = await makeFixture();
      const stream = await capture.open({ after: null, slots: ALL_SLOTS });
      const [committed] = await commit([{ aggregateId: 'a' }]);
      const { rows } = await readRows(stream, 1);
      expect(rows[0]).toMatchObject({
        eventId: committed?.eventId,
        namespace: committed?.namespace,
        aggregateVersion: 1,
        payload: committed?.payload,
        digest: committed?.digest,
        occurredAt: committed?.occurredAt,
        headers: committed?.headers,
        slot: committed?.slot,
        status: 'PENDING',
        form: 'original',
        dueInMs: 0,
      });
      await stream.close();
    });

    it('continues behind the row whose token it is given', async () => {
      const { capture, commit } = await makeFixture();
      const stream = await capture.open({ after: null, slots: ALL_SLOTS });
      await commit([{ aggregateId: 'a' }]);
      const later = await commit([{ aggregateId: 'b' }, { aggregateId: 'a' }]);
      const { tokens } = await readRows(stream, 3);
      await stream.close();
      const resumed = await capture.open({ after: tokens[0]!, slots: ALL_SLOTS });
      const { rows } = await readRows(resumed, 2);
      expect(rows.map((row) => row.eventId)).toEqual(later.map((row) => row.eventId));
      await resumed.close();
    });

    it('continues behind everything delivered at the token of a batch', async () => {
      const { capture, commit } = await makeFixture();
      const stream = await capture.open({ after: null, slots: ALL_SLOTS });
      await commit([{ aggregateId: 'a' }, { aggregateId: 'a' }]);
      const { batchToken } = await readRows(stream, 2);
      await stream.close();
      const later = await commit([{ aggregateId: 'b' }]);
      const resumed = await capture.open({ after: batchToken, slots: ALL_SLOTS });
      const { rows } = await readRows(resumed, 1);
      expect(rows.map((row) => row.eventId)).toEqual(later.map((row) => row.eventId));
      await resumed.close();
    });

    it('brings rows of the asked slots only', async () => {
      const { capture, commit } = await makeFixture();
      const [sample] = await commit([{ aggregateId: 'mine' }]);
      const stream = await capture.open({ after: null, slots: [sample!.slot] });
      const others = Array.from({ length: 12 }, (_, index) => ({ aggregateId: `other-${index}` }));
      const committed = await commit([...others, { aggregateId: 'mine' }]);
      const wanted = committed.filter((row) => row.slot === sample!.slot);
      const { rows } = await readRows(stream, wanted.length);
      expect(rows.map((row) => row.eventId)).toEqual(wanted.map((row) => row.eventId));
      await stream.close();
    });

    it('answers with an empty batch within a few seconds when nothing commits', async () => {
      const { capture } = await makeFixture();
      const stream = await capture.open({ after: null, slots: ALL_SLOTS });
      const batch = await stream.read();
      expect(batch.rows).toEqual([]);
      expect(batch.disturbed).toBe(false);
      await stream.close();
    });

    it('says NP_CAPTURE_LOST of a token that it does not know, at the opening or at the first read', async () => {
      const { capture, unknownToken } = await makeFixture();
      const attempt = capture.open({ after: unknownToken, slots: ALL_SLOTS }).then((stream) => stream.read());
      const error = await attempt.then(
        () => null,
        (reason: unknown) => reason,
      );
      expect(error).toBeInstanceOf(NightporterError);
      expect(error).toMatchObject({ code: 'NP_CAPTURE_LOST' });
    });

    it('says that it was disturbed when an outbox is dropped, or that it is lost, and can be opened anew', async () => {
      const { capture, commit, dropFirstOutbox } = await makeFixture();
      const stream = await capture.open({ after: null, slots: ALL_SLOTS });
      await commit([{ aggregateId: 'a' }]);
      await dropFirstOutbox();
      expect(await noticesDisturbance(stream)).toBe(true);
      await stream.close();
      const fresh = await capture.open({ after: null, slots: ALL_SLOTS });
      const [row] = await commit([{ aggregateId: 'b' }]);
      const { rows } = await readRows(fresh, 1);
      expect(rows[0]?.eventId).toBe(row?.eventId);
      await fresh.close();
    });
  });
}

async function readRows(
  stream: CaptureStream,
  count: number,
): Promise<{ rows: OutboxRow[]; tokens: ResumeToken[]; batchToken: ResumeToken | null }> {
  const rows: OutboxRow[] = [];
  const tokens: ResumeToken[] = [];
  let batchToken: ResumeToken | null = null;
  for (let read = 0; read < READ_LIMIT && rows.length < count; read += 1) {
    const batch = await stream.read();
    rows.push(...batch.rows.map((captured) => captured.row));
    tokens.push(...batch.rows.map((captured) => captured.token));
    batchToken = batch.token;
  }
  return { rows, tokens, batchToken };
}

async function noticesDisturbance(stream: CaptureStream): Promise<boolean> {
  try {
    for (let read = 0; read < READ_LIMIT; read += 1) if ((await stream.read()).disturbed) return true;
    return false;
  } catch (error) {
    if (error instanceof NightporterError && error.code === 'NP_CAPTURE_LOST') return true;
    throw error;
  }
}
