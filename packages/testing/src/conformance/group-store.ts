import { versionKey, type GroupState, type GroupStore, type GroupTransaction } from '@nightporter/consumer';
import { isNightporterError } from '@nightporter/protocol';
import { describe, expect, it } from 'vitest';
import { commitChanges, parkChange, positionChange, type GroupFixture } from './group-fixture.js';
import { incomingEvent, uniqueId } from './samples.js';

/** Every group store keeps to this. The fixture brings a fresh group for each test. */
export function groupStoreConformance<Session>(name: string, makeFixture: () => Promise<GroupFixture<Session>>): void {
  describe(`${name} as a group store`, () => {
    describeReading(makeFixture);
    describeWriting(makeFixture);
    describeFailing(makeFixture);
    describeConflicts(makeFixture);
  });
}

function describeReading<Session>(makeFixture: () => Promise<GroupFixture<Session>>): void {
  it('knows nothing of an aggregate that it has never seen', async () => {
    const { store } = await makeFixture();
    const state = await load(store, [incomingEvent({ aggregateId: 'a', version: 1 })]);
    expect(state.positions.size + state.inboxByEvent.size + state.inboxByVersion.size + state.parked.size).toBe(0);
  });

  it('gives back what was settled, by event and by version', async () => {
    const { store } = await makeFixture();
    const event = incomingEvent({ aggregateId: 'a', version: 1 });
    const rival = incomingEvent({ aggregateId: 'a', version: 1 });
    const { aggregate } = event;
    await commitChanges(
      store,
      [event],
      [
        { kind: 'settle', event, outcome: 'applied', attempts: 1 },
        positionChange(aggregate, { version: 1, startVersion: 0, state: 'open' }),
      ],
    );
    const state = await load(store, [rival]);
    const record = { eventId: event.envelope.eventId, aggregate, version: 1, outcome: 'applied' };
    expect(state.inboxByVersion.get(versionKey(aggregate, 1))).toMatchObject(record);
    expect(state.inboxByEvent.has(rival.envelope.eventId)).toBe(false);
    expect(state.positions.get(aggregate)).toMatchObject({ version: 1, startVersion: 0, state: 'open' });
    expect((await load(store, [event])).inboxByEvent.get(event.envelope.eventId)).toMatchObject(record);
  });

  it('shows the parked messages at the asked versions and right behind them, whole', async () => {
    const { store } = await makeFixture();
    const events = [1, 2, 3, 4].map((version) => incomingEvent({ aggregateId: 'a', version }));
    const failure = { code: 'NP_HANDLER_FAILED', message: 'no stock', stack: null };
    await commitChanges(store, events, [
      parkChange(events[1]!, { state: 'dead', attempts: 5, retryInMs: null, failure }),
      parkChange(events[2]!, { state: 'behind', retryInMs: null }),
      parkChange(events[3]!, { state: 'behind', retryInMs: null }),
    ]);
    const { parked } = await load(store, [events[1]!]);
    const { aggregate } = events[1]!;
    expect([...parked.keys()].sort()).toEqual([versionKey(aggregate, 2), versionKey(aggregate, 3)]);
    expect(parked.get(versionKey(aggregate, 2))).toMatchObject({ event: events[1], state: 'dead', attempts: 5 });
    expect(parked.get(versionKey(aggregate, 3))).toMatchObject({ event: events[2], state: 'behind', attempts: 0 });
  });

  it('keeps aggregates apart whose names differ only in where the parts end', async () => {
    const { store } = await makeFixture();
    const event = incomingEvent({ aggregateId: 'a/b', version: 1 });
    const other = incomingEvent({ aggregateId: 'a%2Fb', version: 1 });
    await commitChanges(store, [event], [positionChange(event.aggregate, { version: 7 })]);
    expect((await load(store, [other])).positions.size).toBe(0);
  });
}

function describeWriting<Session>(makeFixture: () => Promise<GroupFixture<Session>>): void {
  it('commits what a handler wrote together with the outcome', async () => {
    const fixture = await makeFixture();
    const event = incomingEvent({ aggregateId: 'a', version: 1 });
    const document = uniqueId('order');
    await fixture.store.transact(async (transaction) => {
      await transaction.load([event]);
      await fixture.writeDocument(transaction.session, document, 'paid');
      await transaction.save([{ kind: 'settle', event, outcome: 'applied', attempts: 1 }]);
    });
    expect(await fixture.readDocument(document)).toBe('paid');
  });

  it('returns what the work returned', async () => {
    const { store } = await makeFixture();
    await expect(store.transact(() => Promise.resolve('result'))).resolves.toBe('result');
  });

  it('changes a parked message in place, and removes it', async () => {
    const { store } = await makeFixture();
    const event = incomingEvent({ aggregateId: 'a', version: 1 });
    const { aggregate } = event;
    await commitChanges(store, [event], [parkChange(event, { state: 'gap', retryInMs: null })]);
    const before = (await load(store, [event])).parked.get(versionKey(aggregate, 1));
    await commitChanges(store, [event], [parkChange(event, { state: 'retry', attempts: 2, retryInMs: 60_000 })]);
    const after = (await load(store, [event])).parked.get(versionKey(aggregate, 1));
    expect(after).toMatchObject({ state: 'retry', attempts: 2 });
    expect(after!.revision).toBeGreaterThan(before!.revision);
    await commitChanges(store, [event], [{ kind: 'unpark', aggregate, version: event.envelope.aggregateVersion }]);
    expect((await load(store, [event])).parked.size).toBe(0);
  });

  it('makes a waiting message due, and leaves a dead one dead', async () => {
    const { store } = await makeFixture();
    const events = [1, 2].map((version) => incomingEvent({ aggregateId: 'a', version }));
    const { aggregate } = events[0]!;
    await commitChanges(store, events, [
      parkChange(events[0]!, { state: 'behind', retryInMs: null }),
      parkChange(events[1]!, { state: 'dead', retryInMs: null }),
    ]);
    await commitChanges(
      store,
      events,
      events.map((event) => ({ kind: 'make-due', aggregate, version: event.envelope.aggregateVersion })),
    );
    const { parked } = await load(store, events);
    expect(parked.get(versionKey(aggregate, 1))?.state).toBe('retry');
    expect(parked.get(versionKey(aggregate, 2))?.state).toBe('dead');
  });

  it('takes no offence at changes of what is not there', async () => {
    const { store } = await makeFixture();
    const event = incomingEvent({ aggregateId: 'a', version: 1 });
    const { aggregate } = event;
    const version = event.envelope.aggregateVersion;
    await commitChanges(
      store,
      [event],
      [
        { kind: 'count-duplicate', eventId: event.envelope.eventId },
        { kind: 'make-due', aggregate, version },
        { kind: 'unpark', aggregate, version },
      ],
    );
    expect((await load(store, [event])).parked.size).toBe(0);
  });

  it('sets a message aside more than once without complaint', async () => {
    const { store } = await makeFixture();
    const failure = { code: 'NP_MESSAGE_UNREADABLE', message: 'not JSON', stack: null };
    const id = uniqueId('aside');
    for (const messageId of ['message 1', 'message 2']) {
      const body = new TextEncoder().encode('{');
      const properties = { 'np-source': 'x' };
      const aside = { kind: 'set-aside', id, topic: 'sample-events', messageId, body, properties, failure } as const;
      await expect(store.transact((transaction) => transaction.save([aside]))).resolves.toBeUndefined();
    }
  });
}

function describeFailing<Session>(makeFixture: () => Promise<GroupFixture<Session>>): void {
  it('writes nothing when the work throws, and passes on what it threw', async () => {
    const fixture = await makeFixture();
    const event = incomingEvent({ aggregateId: 'a', version: 1 });
    const document = uniqueId('order');
    const thrown = new Error('no stock');
    const attempt = fixture.store.transact(async (transaction) => {
      await transaction.load([event]);
      await fixture.writeDocument(transaction.session, document, 'paid');
      throw thrown;
    });
    await expect(attempt).rejects.toBe(thrown);
    expect(await fixture.readDocument(document)).toBeNull();
  });

  it('refuses to settle an event twice, with a conflict and without a second effect', async () => {
    const fixture = await makeFixture();
    const event = incomingEvent({ aggregateId: 'a', version: 1 });
    const document = uniqueId('order');
    const settle = (value: string): Promise<void> =>
      fixture.store.transact(async (transaction) => {
        await transaction.load([event]);
        await fixture.writeDocument(transaction.session, document, value);
        await transaction.save([{ kind: 'settle', event, outcome: 'applied', attempts: 1 }]);
      });
    await settle('first');
    await expect(settle('second')).rejects.toMatchObject({ code: 'NP_TRANSACTION_CONFLICT' });
    expect(await fixture.readDocument(document)).toBe('first');
  });

  it('refuses to settle two events at one version', async () => {
    const { store } = await makeFixture();
    const events = [1, 1].map((version) => incomingEvent({ aggregateId: 'a', version }));
    await commitChanges(store, [], [{ kind: 'settle', event: events[0]!, outcome: 'applied', attempts: 1 }]);
    const second = commitChanges(store, [], [{ kind: 'settle', event: events[1]!, outcome: 'applied', attempts: 1 }]);
    await expect(second).rejects.toMatchObject({ code: 'NP_TRANSACTION_CONFLICT' });
  });
}

function describeConflicts<Session>(makeFixture: () => Promise<GroupFixture<Session>>): void {
  it('lets one of two transactions win that write one position, and tells the other of the conflict', async () => {
    const { store } = await makeFixture();
    const event = incomingEvent({ aggregateId: 'a', version: 1 });
    const outcomes = await race(store, async (transaction, meet) => {
      await transaction.load([event]);
      await meet();
      await transaction.save([positionChange(event.aggregate, { version: 1 })]);
    });
    expect(outcomes.sort()).toEqual(['NP_TRANSACTION_CONFLICT', 'committed']);
  });

  it('counts a position that is written unchanged as written', async () => {
    const { store } = await makeFixture();
    const [first, second] = [1, 2].map((version) => incomingEvent({ aggregateId: 'a', version }));
    await commitChanges(store, [first!], [positionChange(first!.aggregate, { version: 0 })]);
    const outcomes = await race(store, async (transaction, meet, index) => {
      await transaction.load([first!, second!]);
      await meet();
      const position = positionChange(first!.aggregate, { version: index });
      await transaction.save(
        index === 0 ? [parkChange(second!, { state: 'gap', retryInMs: null }), position] : [position],
      );
    });
    expect(outcomes.sort()).toEqual(['NP_TRANSACTION_CONFLICT', 'committed']);
  });

  it('takes a conflict that a handler met and dressed up for what it is', async () => {
    const fixture = await makeFixture();
    const document = uniqueId('order');
    const outcomes = await race(fixture.store, async (transaction, meet, index) => {
      const event = incomingEvent({ aggregateId: `a${index}`, version: 1 });
      await transaction.load([event]);
      await meet();
      try {
        await fixture.writeDocument(transaction.session, document, `written by ${index}`);
      } catch (error) {
        throw new Error('the order could not be written', { cause: error });
      }
      await transaction.save([{ kind: 'settle', event, outcome: 'applied', attempts: 1 }]);
    });
    expect(outcomes.sort()).toEqual(['NP_TRANSACTION_CONFLICT', 'committed']);
  });

  it('lets transactions over different aggregates pass each other', async () => {
    const { store } = await makeFixture();
    const outcomes = await race(store, async (transaction, meet, index) => {
      const event = incomingEvent({ aggregateId: `a${index}`, version: 1 });
      await transaction.load([event]);
      await meet();
      await transaction.save([positionChange(event.aggregate, { version: 1 })]);
    });
    expect(outcomes).toEqual(['committed', 'committed']);
  });
}

async function load<Session>(
  store: GroupStore<Session>,
  events: Parameters<GroupTransaction<Session>['load']>[0],
): Promise<GroupState> {
  return store.transact((transaction) => transaction.load(events));
}

/** Runs two transactions that wait for each other once, and says how each ended. */
async function race<Session>(
  store: GroupStore<Session>,
  work: (transaction: GroupTransaction<Session>, meet: () => Promise<void>, index: number) => Promise<void>,
): Promise<string[]> {
  let arrived = 0;
  let open = (): void => undefined;
  const gate = new Promise<void>((resolve) => {
    open = resolve;
  });
  const meet = async (): Promise<void> => {
    arrived += 1;
    if (arrived === 2) open();
    await gate;
  };
  return Promise.all(
    [0, 1].map(async (index) => {
      try {
        await store.transact((transaction) => work(transaction, meet, index));
        return 'committed';
      } catch (error) {
        if (isNightporterError(error)) return error.code;
        throw error;
      }
    }),
  );
}
