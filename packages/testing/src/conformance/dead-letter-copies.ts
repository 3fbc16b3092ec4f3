import type { DeadLetterCopies, GroupStore } from '@nightporter/consumer';
import { encodeEnvelope } from '@nightporter/contracts';
import { describe, expect, it } from 'vitest';
import { commitChanges, parkChange } from './group-fixture.js';
import { incomingEvent } from './samples.js';

export interface CopiesFixture<Session> {
  readonly store: GroupStore<Session>;
  readonly copies: DeadLetterCopies;
  /** Lets the database's clock go on. */
  readonly passTime: (byMs: number) => Promise<void>;
}

const CLAIM_MS = 60_000;

/** Every keeper of copies keeps to this. The fixture brings a fresh group for each test, which copies its dead letters. */
export function deadLetterCopiesConformance<Session>(
  name: string,
  makeFixture: () => Promise<CopiesFixture<Session>>,
): void {
  describe(`${name} as a keeper of copies`, () => {
    const failure = { code: 'NP_HANDLER_FAILED', message: 'told to fail', stack: null };

    it('has one for each event that is parked as dead, with its death and its body, and none for others', async () => {
      const { copies, store } = await makeFixture();
      const [dead, retried] = [1, 2].map((version) => incomingEvent({ aggregateId: 'a', version }));
      await commitChanges(
        store,
        [dead!],
        [parkChange(dead!, { state: 'dead', attempts: 3, retryInMs: null, failure })],
      );
      await commitChanges(store, [retried!], [parkChange(retried!, { state: 'behind', retryInMs: null })]);
      const copy = await copies.claim(CLAIM_MS);
      expect(copy).toMatchObject({ attempts: 3, failure, event: { digest: dead!.digest, messageId: dead!.messageId } });
      expect(encodeEnvelope(copy!.event.envelope)).toEqual(encodeEnvelope(dead!.envelope));
      expect(await copies.claim(CLAIM_MS)).toBeNull();
    });

    it('gives a claimed one to nobody else until the claim is over, and never again once it is done', async () => {
      const { copies, passTime, store } = await makeFixture();
      const event = incomingEvent({ aggregateId: 'a', version: 1 });
      await commitChanges(store, [event], [parkChange(event, { state: 'dead', retryInMs: null, failure })]);
      const first = await copies.claim(100);
      expect(await copies.claim(100)).toBeNull();
      await passTime(200);
      const again = await copies.claim(100);
      expect(again?.id).toBe(first?.id);
      await copies.done(again!.id);
      await passTime(200);
      expect(await copies.claim(100)).toBeNull();
    });

    it('gives it to one of many that ask at the same moment', async () => {
      const { copies, passTime, store } = await makeFixture();
      for (let version = 1; version <= 5; version += 1) {
        const event = incomingEvent({ aggregateId: 'a', version });
        await commitChanges(store, [event], [parkChange(event, { state: 'dead', retryInMs: null, failure })]);
        // Due by whichever of the database's clocks is the later.
        await passTime(10);
        const asked = await Promise.all(Array.from({ length: 6 }, () => copies.claim(CLAIM_MS)));
        expect(asked.filter((copy) => copy !== null)).toHaveLength(1);
      }
    });

    it('has another one when the event dies again', async () => {
      const { copies, passTime, store } = await makeFixture();
      const event = incomingEvent({ aggregateId: 'a', version: 1 });
      const die = () => commitChanges(store, [event], [parkChange(event, { state: 'dead', retryInMs: null, failure })]);
      await die();
      await copies.done((await copies.claim(CLAIM_MS))!.id);
      await passTime(10);
      await die();
      expect(await copies.claim(CLAIM_MS)).toMatchObject({ event: { messageId: event.messageId } });
    });

    it('has none of a death that did not commit', async () => {
      const { copies, store } = await makeFixture();
      const event = incomingEvent({ aggregateId: 'a', version: 1 });
      const aborted = store.transact(async (transaction) => {
        await transaction.load([event]);
        await transaction.save([parkChange(event, { state: 'dead', retryInMs: null, failure })]);
        throw new Error('rolled back');
      });
      await expect(aborted).rejects.toThrow('rolled back');
      expect(await copies.claim(CLAIM_MS)).toBeNull();
    });
  });
}
