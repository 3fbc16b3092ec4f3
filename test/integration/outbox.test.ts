import { codeOf, connect, note, outboxFixture, type OutboxFixture } from './outbox-fixture.js';
import type { MongoClient } from 'mongodb';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { sharedStack } from '../support/stack.js';
import { digestOf, envelopeOf } from '@nightporter/contracts';

let client: MongoClient;
let fixture: OutboxFixture;

beforeAll(async () => {
  client = await connect(sharedStack().mongodbUri);
});

afterAll(async () => {
  await client.close();
});

beforeEach(async () => {
  fixture = await outboxFixture(client);
});

describe('a transaction', () => {
  it('commits the domain change and its events together', async () => {
    const { outbox, rows, notes } = fixture;
    const emitted = await outbox.transaction(async ({ session, emit }) => {
      await notes.insertOne({ _id: 'n', text: 'hello' }, { session });
      return emit(note('n', { payload: { text: 'hello' }, headers: { tenantId: 't' } }));
    });
    expect(await notes.countDocuments()).toBe(1);
    const stored = await rows.findOne({ _id: emitted.eventId });
    expect(stored).toMatchObject({
      source: 'tests',
      aggregateType: 'note',
      aggregateId: 'n',
      aggregateVersion: 1,
      eventType: 'Noted',
      eventVersion: 1,
      topic: 'notes',
      eventKey: 'tests/note/n',
      payload: { text: 'hello' },
      headers: { tenantId: 't', correlationId: emitted.eventId },
      status: 'PENDING',
      unsettled: true,
      revision: 1,
    });
    expect(stored?.digest).toBe(digestOf(envelopeOf(stored!, 'original')));
    expect(emitted).toEqual({
      eventId: stored?._id,
      aggregateVersion: 1,
      eventVersion: 1,
      topic: 'notes',
      eventKey: 'tests/note/n',
      occurredAt: stored?.occurredAt,
      correlationId: emitted.eventId,
    });
  });

  it('leaves nothing behind when the work throws after its emits', async () => {
    const { outbox, notes, counts } = fixture;
    const error = new Error('no stock');
    const outcome = await outbox
      .transaction(async ({ session, emit }) => {
        await notes.insertOne({ _id: 'n', text: 'x' }, { session });
        await emit(note('n'));
        await emit(note('m'));
        throw error;
      })
      .catch((thrown: unknown) => thrown);
    expect(outcome).toBe(error);
    expect(await counts()).toEqual([0, 0, 0]);
  });

  it('keeps the versions of several aggregates dense, over several events of each and several transactions', async () => {
    const { outbox, rows, versionsOf, headOf } = fixture;
    for (let round = 0; round < 3; round += 1) {
      await outbox.transaction(async ({ emit }) => {
        await emit(note('a'));
        await emit({ aggregateType: 'file', aggregateId: 'a', eventType: 'Filed', payload: [round] });
        await emit(note('a'));
        await emit(note('b'));
        const last = await emit(note('a'));
        expect(last.aggregateVersion).toBe(3 * round + 3);
      });
    }
    const files = await rows.find({ aggregateType: 'file' }, { sort: { aggregateVersion: 1 } }).toArray();
    expect(files.map(({ aggregateVersion, eventVersion }) => [aggregateVersion, eventVersion])).toEqual([
      [1, 2],
      [2, 2],
      [3, 2],
    ]);
    expect(
      (await rows.find({ aggregateType: 'note', aggregateId: 'a' }).toArray()).map((row) => row.aggregateVersion),
    ).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9]);
    expect(await versionsOf('b')).toEqual([1, 2, 3]);
    expect([await headOf('a'), await headOf('a', 'file'), await headOf('b')]).toEqual([9, 3, 3]);
  });

  it('numbers events in the order in which they were emitted, awaited one by one or all at once', async () => {
    const { outbox, rows } = fixture;
    await outbox.transaction(async ({ emit }) => {
      const emitted = await Promise.all([1, 2, 3, 4, 5].map((n) => emit(note('a', { payload: n }))));
      expect(emitted.map(({ aggregateVersion }) => aggregateVersion)).toEqual([1, 2, 3, 4, 5]);
    });
    const stored = await rows.find({}, { sort: { aggregateVersion: 1 } }).toArray();
    expect(stored.map(({ payload }) => payload)).toEqual([1, 2, 3, 4, 5]);
    expect(stored.map(({ _id }) => _id)).toEqual(stored.map(({ _id }) => _id).toSorted());
  });

  it('waits for emits that the work did not await, and fails with them', async () => {
    const { outbox, notes, versionsOf } = fixture;
    await outbox.transaction(({ emit }) => {
      void emit(note('a'));
      return Promise.resolve();
    });
    expect(await versionsOf('a')).toEqual([1]);
    const failing = outbox.transaction(async ({ session, emit }) => {
      await notes.insertOne({ _id: 'n', text: 'x' }, { session });
      void emit(note('a', { payload: undefined }));
    });
    expect(await codeOf(failing)).toBe('NP_PAYLOAD_NOT_JSON');
    expect(await notes.countDocuments()).toBe(0);
  });

  it('fails as a whole where the work caught the refusal of an emit', async () => {
    const { outbox, heads, notes } = fixture;
    const swallowing = outbox.transaction(async ({ session, emit }) => {
      await notes.insertOne({ _id: 'n', text: 'x' }, { session });
      await emit(note('a', { expectedVersion: 7 })).catch(() => undefined);
    });
    expect(await codeOf(swallowing)).toBe('NP_VERSION_EXPECTED');
    expect([await notes.countDocuments(), await heads.countDocuments()]).toEqual([0, 0]);
  });

  it('gives all its events one story, and those defaults that it was given', async () => {
    const { outbox, rows } = fixture;
    const headers = { tenantId: 't', traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01' };
    const first = await outbox.transaction(
      async ({ emit }) => {
        const emitted = await emit(note('a'));
        await emit(note('b', { headers: { causationId: 'k' } }));
        return emitted;
      },
      { headers },
    );
    const stored = await rows.find({}, { sort: { aggregateId: 1 } }).toArray();
    expect(stored.map((row) => row.headers)).toEqual([
      { ...headers, correlationId: first.eventId },
      { ...headers, correlationId: first.eventId, causationId: 'k' },
    ]);
  });

  it('collects events that come by way of its session, too', async () => {
    const { outbox, rows, versionsOf } = fixture;
    await outbox.transaction(async ({ session, emit }) => {
      await emit(note('a'));
      const second = await outbox.emit(session, note('a'));
      expect(second.aggregateVersion).toBe(2);
      expect(await rows.countDocuments({}, { session })).toBe(0);
      await emit(note('a'));
    });
    expect(await versionsOf('a')).toEqual([1, 2, 3]);
  });

  it('with 20 commands at once on one aggregate fails for none, and the versions are contiguous', async () => {
    const { outbox, notes, versionsOf } = fixture;
    const results = await Promise.all(
      Array.from({ length: 20 }, (_, n) =>
        outbox.transaction(async ({ session, emit }) => {
          await notes.insertOne({ _id: `n${n}`, text: 'x' }, { session });
          return (await emit(note('a'))).aggregateVersion;
        }),
      ),
    );
    const all = Array.from({ length: 20 }, (_, n) => n + 1);
    expect(results.toSorted((left, right) => left - right)).toEqual(all);
    expect(await versionsOf('a')).toEqual(all);
    expect(await notes.countDocuments()).toBe(20);
  });

  it('that opened first may commit last: both have their events', async () => {
    const { outbox, rows } = fixture;
    let release = (): void => undefined;
    const released = new Promise<void>((resolve) => (release = resolve));
    let opened = (): void => undefined;
    const isOpen = new Promise<void>((resolve) => (opened = resolve));
    const first = outbox.transaction(async ({ emit }) => {
      await emit(note('first'));
      opened();
      await released;
    });
    await isOpen;
    await outbox.transaction(({ emit }) => emit(note('second')));
    expect(await rows.countDocuments()).toBe(1);
    release();
    await first;
    const stored = await rows.find({ unsettled: true, status: 'PENDING' }).toArray();
    expect(stored.map(({ aggregateId }) => aggregateId).toSorted()).toEqual(['first', 'second']);
  });

  it('repeated after a conflict gives its n-th event the same id, and nothing twice', async () => {
    const { outbox, notes, versionsOf } = fixture;
    const ids: string[][] = [];
    let rivals = 2;
    const run = outbox.transaction(async ({ session, emit }) => {
      // The snapshot begins with the first read, so that the rival's commit comes too late for it.
      await notes.findOne({ _id: 'n' }, { session });
      if (rivals > 0) {
        rivals -= 1;
        await outbox.transaction((rival) => rival.emit(note('a')));
      }
      const seen: string[] = [];
      ids.push(seen);
      seen.push((await emit(note('b'))).eventId);
      seen.push((await emit(note('a'))).eventId);
    });
    await run;
    expect(ids.map((seen) => seen[0])).toEqual([ids[0]?.[0], ids[0]?.[0], ids[0]?.[0]]);
    expect(ids[2]).toHaveLength(2);
    expect(await versionsOf('a')).toEqual([1, 2, 3]);
    expect(await versionsOf('b')).toEqual([1]);
  });

  it('in which an error of the database was swallowed fails within two seconds, with the reason', async () => {
    const { outbox, rows, notes } = fixture;
    await notes.insertOne({ _id: 'n', text: 'x' });
    const startedAtMs = performance.now();
    for (const emits of [true, false]) {
      const swallowing = outbox.transaction(async ({ session, emit }) => {
        await notes.insertOne({ _id: 'n', text: 'again' }, { session }).catch(() => undefined);
        if (emits) await emit(note('a'));
      });
      expect(await codeOf(swallowing)).toBe('NP_TRANSACTION_ABORTED');
    }
    expect(performance.now() - startedAtMs).toBeLessThan(2_000);
    expect(await rows.countDocuments()).toBe(0);
  });

  it('hands on a duplicate key of the business as the driver raised it', async () => {
    const { outbox, heads, notes } = fixture;
    await notes.insertOne({ _id: 'n', text: 'x' });
    const duplicate = outbox.transaction(async ({ session, emit }) => {
      await emit(note('a'));
      await notes.insertOne({ _id: 'n', text: 'again' }, { session });
    });
    await expect(duplicate).rejects.toMatchObject({ name: 'MongoServerError', code: 11000 });
    expect(await heads.countDocuments()).toBe(0);
  });

  it('that was rolled back lets no statement through that its work left running', async () => {
    const { outbox, notes, counts } = fixture;
    let late: Promise<unknown> = Promise.resolve();
    const failing = outbox.transaction(({ session }) => {
      late = codeOf(
        new Promise((resolve) => setTimeout(resolve, 20)).then(() =>
          notes.insertOne({ _id: 'n', text: 'x' }, { session }),
        ),
      );
      return Promise.reject(new Error('no stock'));
    });
    await expect(failing).rejects.toThrow('no stock');
    expect(await late).toMatchObject({ name: 'MongoExpiredSessionError' });
    expect(await counts()).toEqual([0, 0, 0]);
  });

  it('is refused where the work ended it by itself', async () => {
    const { outbox, rows } = fixture;
    const ended = outbox.transaction(async ({ session, emit }) => {
      await emit(note('a'));
      await session.commitTransaction();
    });
    expect(await codeOf(ended)).toBe('NP_NO_TRANSACTION');
    expect(await rows.countDocuments()).toBe(0);
  });

  it('names the conflict when the outbox has another event at its version, as after a restored head', async () => {
    const { outbox, heads, headOf } = fixture;
    await outbox.transaction(({ emit }) => emit(note('a')));
    await heads.deleteMany({});
    expect(await codeOf(outbox.transaction(({ emit }) => emit(note('a'))))).toBe('NP_VERSION_CONFLICT');
    expect(await headOf('a')).toBeUndefined();
  });
});
