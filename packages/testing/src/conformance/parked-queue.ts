import { versionKey, type ClaimRequest, type GroupStore, type ParkedEvent } from '@nightporter/consumer';
import { describe, expect, it } from 'vitest';
import { commitChanges, parkChange, positionChange, type GroupFixture } from './group-fixture.js';
import { describeBehind } from './parked-behind.js';
import { incomingEvent } from './samples.js';

const CLAIM_MS = 400;
const ANY: ClaimRequest = { limit: 10, repeatedLimit: 10, togetherMax: 1, claimMs: CLAIM_MS, isAlone: true };

/** Every parked queue keeps to this. The fixture brings a fresh group for each test. */
export function parkedQueueConformance<Session>(name: string, makeFixture: () => Promise<GroupFixture<Session>>): void {
  describe(`${name} as a parked queue`, () => {
    describeClaims(makeFixture);
    describeBehind(makeFixture);
    describeWaking(makeFixture);
  });
}

function describeClaims<Session>(makeFixture: () => Promise<GroupFixture<Session>>): void {
  it('hands out what is due, with the claim counted', async () => {
    const { store, parked } = await makeFixture();
    const event = incomingEvent({ aggregateId: 'a', version: 1 });
    await commitChanges(store, [event], [parkChange(event, { attempts: 2 })]);
    const claimed = await parked.claimDue(ANY);
    expect(claimed).toHaveLength(1);
    expect(claimed[0]).toMatchObject({ event, state: 'retry', attempts: 3 });
  });

  it('hands out no more of what was claimed before than asked for, and what nobody has claimed in its stead', async () => {
    const { store, parked, passTime } = await makeFixture();
    const events = ['a', 'b', 'c', 'd'].map((aggregateId) => incomingEvent({ aggregateId, version: 1 }));
    await commitChanges(
      store,
      events,
      events.map((event, index) => parkChange(event, { attempts: index < 3 ? 1 : 0, retryInMs: index })),
    );
    await passTime(10);
    const none = await parked.claimDue({ ...ANY, limit: 2, repeatedLimit: 0 });
    expect(none.map(({ event }) => event)).toEqual([events[3]]);
    expect(await parked.claimDue({ ...ANY, limit: 3, repeatedLimit: 1 })).toHaveLength(1);
  });

  it('hands out neither what waits for its time nor what waits for anything else', async () => {
    const { store, parked } = await makeFixture();
    const events = [1, 2, 3, 4].map((version) => incomingEvent({ aggregateId: 'a', version }));
    await commitChanges(store, events, [
      parkChange(events[0]!, { retryInMs: 60_000 }),
      parkChange(events[1]!, { state: 'behind', retryInMs: null }),
      parkChange(events[2]!, { state: 'gap', retryInMs: null }),
      parkChange(events[3]!, { state: 'dead', retryInMs: null }),
    ]);
    expect(await parked.claimDue(ANY)).toEqual([]);
  });

  it('hands out a message once its time has come by the database’s clock', async () => {
    const { store, parked, passTime } = await makeFixture();
    const event = incomingEvent({ aggregateId: 'a', version: 1 });
    await commitChanges(store, [event], [parkChange(event, { retryInMs: 300 })]);
    expect(await parked.claimDue(ANY)).toEqual([]);
    await passTime(350);
    expect(await parked.claimDue(ANY)).toHaveLength(1);
  });

  it('hands a message to one claimer only, and to another once the claim is over', async () => {
    const { store, parked, passTime } = await makeFixture();
    const event = incomingEvent({ aggregateId: 'a', version: 1 });
    await commitChanges(store, [event], [parkChange(event)]);
    const claims = await Promise.all([1, 2, 3, 4].map(() => parked.claimDue(ANY)));
    expect(claims.flat()).toHaveLength(1);
    await passTime(CLAIM_MS + 50);
    const [again] = await parked.claimDue(ANY);
    expect(again).toMatchObject({ event, attempts: 2 });
  });

  it('hands out what was claimed and not heard of since by itself, to a caller who has nothing else in hand, before anything else', async () => {
    const { store, parked, passTime } = await makeFixture();
    const [dying, neighbour, fresh] = ['a', 'b', 'c'].map((aggregateId) => incomingEvent({ aggregateId, version: 1 }));
    await commitChanges(store, [dying!, neighbour!], [parkChange(dying!), parkChange(neighbour!)]);
    const claim = (isAlone: boolean) => parked.claimDue({ ...ANY, isAlone });
    const together = await claim(false);
    expect(together).toMatchObject([{ isUnanswered: false }, { isUnanswered: false }]);
    await passTime(CLAIM_MS + 50);
    await commitChanges(store, [fresh!], [parkChange(fresh!)]);
    expect(await claim(false)).toEqual([]);
    const first = await claim(true);
    expect(first).toMatchObject([{ attempts: 2, isUnanswered: true }]);
    const second = await claim(true);
    expect(second).toMatchObject([{ attempts: 2, isUnanswered: true }]);
    expect([...first, ...second].map(({ event }) => event.aggregate).sort()).toEqual(
      [dying!.aggregate, neighbour!.aggregate].sort(),
    );
    // A failure that is told, and a claim that is given back, are words.
    await commitChanges(store, [dying!], [parkChange(dying!, { attempts: 2 })]);
    await parked.giveBack(second.filter(({ event }) => event.aggregate === neighbour!.aggregate));
    await parked.giveBack(first.filter(({ event }) => event.aggregate === neighbour!.aggregate));
    expect((await claim(false)).map(({ isUnanswered }) => isUnanswered)).toEqual([false, false, false]);
  });

  it('hands out no more than the limit', async () => {
    const { store, parked } = await makeFixture();
    const events = [1, 2, 3].map((index) => incomingEvent({ aggregateId: `a${index}`, version: 1 }));
    await commitChanges(
      store,
      events,
      events.map((event) => parkChange(event)),
    );
    expect(await parked.claimDue({ ...ANY, limit: 2, repeatedLimit: 2 })).toHaveLength(2);
    expect(await parked.claimDue({ ...ANY, limit: 2, repeatedLimit: 2 })).toHaveLength(1);
  });

  it('hands out so many together as one transaction may settle, and each that was tried in a place of its own', async () => {
    const { store, parked } = await makeFixture();
    const events = Array.from({ length: 9 }, (_, index) => incomingEvent({ aggregateId: `a${index}`, version: 1 }));
    await commitChanges(
      store,
      events,
      events.map((event, index) =>
        parkChange(event, index === 0 ? { attempts: 1 } : index === 1 ? { isSuspect: true } : {}),
      ),
    );
    const claim = async (request: Partial<ClaimRequest>) =>
      await parked.claimDue({ ...ANY, togetherMax: 3, ...request });
    const first = await claim({ limit: 2, repeatedLimit: 1 });
    expect(first.map(({ attempts }) => attempts).toSorted()).toEqual([1, 1, 1, 2]);
    // The suspect one is the only one left that needs a place of its own.
    expect(await claim({ limit: 1, repeatedLimit: 0 })).toHaveLength(3);
    const last = await claim({ limit: 2, repeatedLimit: 2 });
    expect(last.map(({ event, isSuspect }) => [event.envelope.aggregateId, isSuspect ?? false])).toEqual(
      expect.arrayContaining([['a1', true]]),
    );
    expect(last).toHaveLength(2);
  });

  it('takes a claim back without an attempt, and the message is due again', async () => {
    const { store, parked } = await makeFixture();
    const event = incomingEvent({ aggregateId: 'a', version: 1 });
    await commitChanges(store, [event], [parkChange(event)]);
    await parked.giveBack(await parked.claimDue({ ...ANY, claimMs: 60_000 }));
    const [again] = await parked.claimDue(ANY);
    expect(again).toMatchObject({ event, attempts: 1 });
  });

  it('keeps in mind what a claim that is given back is suspected of', async () => {
    const { store, parked } = await makeFixture();
    const event = incomingEvent({ aggregateId: 'a', version: 1 });
    await commitChanges(store, [event], [parkChange(event)]);
    const [claimed] = await parked.claimDue({ ...ANY, togetherMax: 4 });
    await parked.giveBack([{ ...claimed!, isSuspect: true }]);
    expect(await parked.claimDue({ ...ANY, togetherMax: 4, repeatedLimit: 0 })).toEqual([]);
    expect(await parked.claimDue(ANY)).toMatchObject([{ attempts: 1, isSuspect: true }]);
  });

  it('leaves a message alone that has changed since the claim that is given back', async () => {
    const { store, parked } = await makeFixture();
    const event = incomingEvent({ aggregateId: 'a', version: 1 });
    await commitChanges(store, [event], [parkChange(event)]);
    const claimed = await parked.claimDue({ ...ANY, claimMs: 60_000 });
    await commitChanges(store, [event], [parkChange(event, { state: 'dead', attempts: 1, retryInMs: null })]);
    await parked.giveBack(claimed);
    expect(await parkedAt(store, event)).toMatchObject({ state: 'dead', attempts: 1 });
    await commitChanges(
      store,
      [event],
      [{ kind: 'unpark', aggregate: event.aggregate, version: event.envelope.aggregateVersion }],
    );
    await parked.giveBack(claimed);
    expect(await parkedAt(store, event)).toBeUndefined();
  });

  it('makes a message due when a transaction says so', async () => {
    const { store, parked } = await makeFixture();
    const event = incomingEvent({ aggregateId: 'a', version: 1 });
    const { aggregate } = event;
    await commitChanges(store, [event], [parkChange(event, { state: 'behind', retryInMs: null })]);
    await commitChanges(store, [event], [{ kind: 'make-due', aggregate, version: event.envelope.aggregateVersion }]);
    expect(await parked.claimDue(ANY)).toHaveLength(1);
  });
}

function describeWaking<Session>(makeFixture: () => Promise<GroupFixture<Session>>): void {
  it('knows nothing of a message that another has replaced, but that its claim is void', async () => {
    const { store, parked, passTime } = await makeFixture();
    const [replaced, event] = [1, 1].map((version) => incomingEvent({ aggregateId: 'a', version }));
    const failure = { code: 'NP_DIGEST_MISMATCH', message: 'altered', stack: null };
    await commitChanges(store, [replaced!], [parkChange(replaced!, { failure })]);
    const [claim] = await parked.claimDue(ANY);
    await passTime(CLAIM_MS);
    await commitChanges(store, [event!], [parkChange(event!, { state: 'gap', retryInMs: null, replaces: true })]);
    const state = await store.transact((transaction) => transaction.load([event!]));
    const row = state.parked.get(versionKey(event!.aggregate, 1));
    expect(row).toMatchObject({ event, state: 'gap', attempts: 0 });
    expect(row!.revision).toBeGreaterThan(claim!.revision);
    expect(await parked.wake({ olderThanMs: CLAIM_MS / 2, limit: 10 })).toBe(0);
  });

  it('wakes a forgotten message that is next in line, and blocks its position', async () => {
    const { store, parked, passTime } = await makeFixture();
    const event = incomingEvent({ aggregateId: 'a', version: 4 });
    await commitChanges(
      store,
      [event],
      [parkChange(event, { state: 'gap', retryInMs: null }), positionChange(event.aggregate, { version: 3 })],
    );
    expect(await parked.wake({ olderThanMs: 60_000, limit: 10 })).toBe(0);
    await passTime(350);
    expect(await parked.wake({ olderThanMs: 200, limit: 10 })).toBe(1);
    const state = await store.transact((transaction) => transaction.load([event]));
    expect(state.positions.get(event.aggregate)).toMatchObject({ version: 3, state: 'blocked' });
    const [claimed] = await parked.claimDue(ANY);
    expect(claimed).toMatchObject({ event, attempts: 1 });
  });

  it('wakes the first version of an aggregate that has no position', async () => {
    const { store, parked, passTime } = await makeFixture();
    const event = incomingEvent({ aggregateId: 'a', version: 1 });
    await commitChanges(store, [event], [parkChange(event, { state: 'behind', retryInMs: null })]);
    await passTime(350);
    expect(await parked.wake({ olderThanMs: 200, limit: 10 })).toBe(1);
  });

  it('wakes what is settled and waits all the same, and with it the next in line, in one go', async () => {
    const { store, parked, passTime } = await makeFixture();
    const events = [2, 3, 4, 6].map((version) => incomingEvent({ aggregateId: 'a', version }));
    const states = ['gap', 'behind', 'behind', 'gap'] as const;
    await commitChanges(store, events, [
      ...events.map((event, index) => parkChange(event, { state: states[index]!, retryInMs: null })),
      positionChange(events[0]!.aggregate, { version: 3 }),
    ]);
    await passTime(350);
    expect(await parked.wake({ olderThanMs: 200, limit: 10 })).toBe(3);
    const state = await store.transact((transaction) => transaction.load(events));
    expect(state.positions.get(events[0]!.aggregate)).toMatchObject({ version: 3, state: 'blocked' });
    expect([...state.parked.values()].map((row) => row.state)).toEqual(['retry', 'retry', 'retry', 'gap']);
  });

  it('wakes no more than asked for, and the others the next time', async () => {
    const { store, parked, passTime } = await makeFixture();
    const events = ['a', 'b', 'c'].map((aggregateId) => incomingEvent({ aggregateId, version: 1 }));
    await commitChanges(
      store,
      events,
      events.map((event) => parkChange(event, { state: 'behind', retryInMs: null })),
    );
    await passTime(350);
    const woken: number[] = [];
    for (let scan = 0; scan < 3; scan += 1) woken.push(await parked.wake({ olderThanMs: 200, limit: 2 }));
    expect(woken).toEqual([2, 1, 0]);
  });

  it('leaves alone what is not next in line, what waits for its retry, and what is dead', async () => {
    const { store, parked, passTime } = await makeFixture();
    const gap = incomingEvent({ aggregateId: 'a', version: 3 });
    const retry = incomingEvent({ aggregateId: 'b', version: 1 });
    const dead = incomingEvent({ aggregateId: 'c', version: 1 });
    await commitChanges(
      store,
      [gap, retry, dead],
      [
        parkChange(gap, { state: 'gap', retryInMs: null }),
        positionChange(gap.aggregate, { version: 1 }),
        parkChange(retry, { retryInMs: 60_000 }),
        parkChange(dead, { state: 'dead', retryInMs: null }),
      ],
    );
    await passTime(350);
    expect(await parked.wake({ olderThanMs: 200, limit: 10 })).toBe(0);
  });
}

async function parkedAt<Session>(
  store: GroupStore<Session>,
  event: ParkedEvent['event'],
): Promise<ParkedEvent | undefined> {
  const state = await store.transact((transaction) => transaction.load([event]));
  return state.parked.get(versionKey(event.aggregate, event.envelope.aggregateVersion));
}
