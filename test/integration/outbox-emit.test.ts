import { codeOf, connect, note, outboxFixture, type OutboxFixture } from './outbox-fixture.js';
import type { Emitter } from '@nightporter/consumer';
import type { ClientSession, MongoClient } from 'mongodb';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { sharedStack } from '../support/stack.js';
import { envelopeOf } from '@nightporter/contracts';
import type { EmitRequest } from '@nightporter/outbox';

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

describe('emit', () => {
  it('outside a transaction is refused', async () => {
    const { outbox, versionsOf } = fixture;
    const session = client.startSession();
    try {
      expect(await codeOf(outbox.emit(session, note('a')))).toBe('NP_NO_TRANSACTION');
      session.startTransaction();
      await outbox.emit(session, note('a'));
      await session.commitTransaction();
      expect(await codeOf(outbox.emit(session, note('a')))).toBe('NP_NO_TRANSACTION');
    } finally {
      await session.endSession();
    }
    expect(await codeOf(outbox.emit(session, note('a')))).toBe('NP_NO_TRANSACTION');
    expect(await versionsOf('a')).toEqual([1]);
  });

  it('after its transaction has ended is refused, by scope and by session', async () => {
    const { outbox, versionsOf } = fixture;
    const leaked = await outbox.transaction(async (scope) => {
      await scope.emit(note('a'));
      return scope;
    });
    expect(await codeOf(leaked.emit(note('a')))).toBe('NP_NO_TRANSACTION');
    expect(await codeOf(outbox.emit(leaked.session, note('a')))).toBe('NP_NO_TRANSACTION');
    expect(await versionsOf('a')).toEqual([1]);
  });

  it('from a run that was rolled back does not reach the run that follows it', async () => {
    const { outbox, notes, versionsOf } = fixture;
    let leaked: ((event: EmitRequest) => Promise<unknown>) | null = null;
    let late: Promise<unknown> = Promise.resolve();
    await outbox.transaction(async ({ session, emit }) => {
      await notes.findOne({ _id: 'n' }, { session });
      if (leaked === null) {
        leaked = emit;
        await outbox.transaction((rival) => rival.emit(note('a')));
      } else {
        late = codeOf(leaked(note('late')));
      }
      await emit(note('a'));
    });
    expect(await late).toBe('NP_NO_TRANSACTION');
    expect(await versionsOf('late')).toEqual([]);
    expect(await versionsOf('a')).toEqual([1, 2]);
  });

  it('at an expected version holds an aggregate to it', async () => {
    const { outbox, versionsOf, headOf } = fixture;
    const at = (expectedVersion: number): Promise<unknown> =>
      codeOf(outbox.transaction(({ emit }) => emit(note('a', { expectedVersion }))));
    expect(await at(1)).toBe('NP_VERSION_EXPECTED');
    expect(await at(0)).toBeNull();
    expect(await at(0)).toBe('NP_VERSION_EXPECTED');
    expect(await at(1)).toBeNull();
    expect(await at(1)).toBe('NP_VERSION_EXPECTED');
    expect(await at(3)).toBe('NP_VERSION_EXPECTED');
    expect(await versionsOf('a')).toEqual([1, 2]);
    const inOne = outbox.transaction(async ({ emit }) => {
      await emit(note('a', { expectedVersion: 2 }));
      await emit(note('a', { expectedVersion: 3 }));
      await emit(note('a', { expectedVersion: 3 }));
    });
    expect(await codeOf(inOne)).toBe('NP_VERSION_EXPECTED');
    expect(await headOf('a')).toBe(2);
  });

  it('at one expected version lets one of many through', async () => {
    const { outbox } = fixture;
    const outcomes = await Promise.all(
      Array.from({ length: 8 }, () =>
        codeOf(outbox.transaction(({ emit }) => emit(note('a', { expectedVersion: 0 })))),
      ),
    );
    expect(outcomes.filter((outcome) => outcome === null)).toHaveLength(1);
    expect(outcomes.filter((outcome) => outcome === 'NP_VERSION_EXPECTED')).toHaveLength(7);
  });

  it('fixes the event key of an aggregate with its first event', async () => {
    const { outbox, rows } = fixture;
    const withKey = (eventKey?: string): Promise<unknown> =>
      codeOf(outbox.transaction(({ emit }) => emit(note('a', eventKey === undefined ? {} : { eventKey }))));
    expect(await withKey('mine')).toBeNull();
    expect(await withKey()).toBeNull();
    expect(await withKey('mine')).toBeNull();
    expect(await withKey('other')).toBe('NP_EVENT_INVALID');
    const stored = await rows.find({}, { sort: { aggregateVersion: 1 } }).toArray();
    expect(stored.map(({ eventKey }) => eventKey)).toEqual(['mine', 'mine', 'mine']);
    expect(new Set(stored.map(({ slot }) => slot)).size).toBe(1);
  });

  it('of an event that the catalogue does not have is refused', async () => {
    const { outbox } = fixture;
    const unknownType = note('a', { eventType: 'Unknown' });
    const unknownVersion = note('a', { eventVersion: 2 });
    for (const request of [unknownType, unknownVersion]) {
      expect(await codeOf(outbox.transaction(({ emit }) => emit(request)))).toBe('NP_EVENT_UNKNOWN');
    }
  });

  it('stops a transaction at a thousand events', async () => {
    const { outbox, rows } = fixture;
    const crowd = outbox.transaction(async ({ emit }) => {
      for (let n = 0; n < 1_001; n += 1) await emit(note('a'));
    });
    expect(await codeOf(crowd)).toBe('NP_EVENT_INVALID');
    expect(await rows.countDocuments()).toBe(0);
  });

  it('of a payload over 4 MiB, or near 16 MB, is refused, and the next event is unaffected', async () => {
    const { outbox, versionsOf } = fixture;
    for (const bytes of [5 * 1024 * 1024, 15_900_000, 1024 * 1024]) {
      const large = outbox.transaction(({ emit }) => emit(note('a', { payload: { text: 'x'.repeat(bytes) } })));
      expect(await codeOf(large)).toBe('NP_EVENT_TOO_LARGE');
    }
    await outbox.transaction(({ emit }) => emit(note('a', { payload: { text: 'x'.repeat(1024 * 1024 - 1_000) } })));
    await outbox.transaction(({ emit }) => emit(note('a')));
    expect(await versionsOf('a')).toEqual([1, 2]);
  });
});

describe('emit on a session of the caller', () => {
  it('joins the transaction that the caller began, and the caller decides', async () => {
    const { outbox, rows, heads, notes, versionsOf, headOf } = fixture;
    const run = (commit: boolean): Promise<void> =>
      client.withSession(async (session) => {
        session.startTransaction();
        await notes.insertOne({ _id: String(commit), text: 'x' }, { session });
        const [first, second] = await Promise.all([outbox.emit(session, note('a')), outbox.emit(session, note('a'))]);
        expect([first.aggregateVersion, second.aggregateVersion]).toEqual([1, 2]);
        await (commit ? session.commitTransaction() : session.abortTransaction());
      });
    await run(false);
    expect([await rows.countDocuments(), await heads.countDocuments()]).toEqual([0, 0]);
    await run(true);
    expect(await versionsOf('a')).toEqual([1, 2]);
    expect(await headOf('a')).toBe(2);
  });

  it("is repeated by the driver's own loop after a conflict", async () => {
    const { outbox, notes, versionsOf } = fixture;
    let rival = true;
    await client.withSession((session) =>
      session.withTransaction(async () => {
        await notes.findOne({ _id: 'n' }, { session });
        if (rival) await outbox.transaction(({ emit }) => emit(note('a')));
        rival = false;
        await outbox.emit(session, note('a'));
      }),
    );
    expect(await versionsOf('a')).toEqual([1, 2]);
  });

  it("reports a refusal through the driver's own loop, and leaves no hole where it was caught", async () => {
    const { outbox, versionsOf, headOf } = fixture;
    const refused = client.withSession((session) =>
      session.withTransaction(() => outbox.emit(session, note('a', { expectedVersion: 1 }))),
    );
    expect(await codeOf(refused)).toBe('NP_VERSION_EXPECTED');
    await client.withSession((session) =>
      session.withTransaction(async () => {
        await outbox.emit(session, note('a', { expectedVersion: 1 })).catch(() => undefined);
        await outbox.emit(session, note('a'));
      }),
    );
    expect(await versionsOf('a')).toEqual([1]);
    expect(await headOf('a')).toBe(1);
  });

  it('cannot be committed once the database has failed it', async () => {
    const { outbox, heads, headOf } = fixture;
    await outbox.transaction(({ emit }) => emit(note('a')));
    await heads.deleteMany({});
    await client.withSession(async (session) => {
      session.startTransaction();
      await outbox.emit(session, note('a')).catch(() => undefined);
      await expect(session.commitTransaction()).rejects.toThrow();
    });
    expect(await headOf('a')).toBeUndefined();
  });

  it('in a handler carries the story, the tenant and the trace of its cause', async () => {
    const { outbox, rows } = fixture;
    await outbox.transaction(({ emit }) => emit(note('cause', { headers: { tenantId: 't' } })));
    const emitter: Emitter<ClientSession> = outbox.emitter();
    const cause = envelopeOf((await rows.findOne({ aggregateId: 'cause' }))!, 'original');
    await client.withSession((session) =>
      session.withTransaction(() => emitter(session, cause)({ ...note('effect'), payload: {} })),
    );
    const effect = await rows.findOne({ aggregateId: 'effect' });
    expect(effect?.headers).toEqual({ tenantId: 't', correlationId: cause.eventId, causationId: cause.eventId });
  });
});
