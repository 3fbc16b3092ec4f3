import { MESSAGE_PROPERTIES } from '@nightporter/contracts';
import { createGroupStores, type SetAsideDocument } from '@nightporter/mongo';
import { eventId } from '@nightporter/protocol';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ATTEMPTS, ledgerFixture, type LedgerFixture } from './ledger-fixture.js';
import { codeOf } from './outbox-fixture.js';

let fixture: LedgerFixture;
beforeAll(async () => {
  fixture = await ledgerFixture();
});
afterAll(() => fixture.close());

const ada = { by: 'ada', reason: 'the handler was mended' };
const ben = { by: 'ben', reason: 'nobody needs it' };

/** An aggregate whose version 2 is dead, with two more waiting behind it. */
async function deadAt2(aggregateId: string) {
  const [, second] = await fixture.publish(aggregateId, 1, 4);
  return fixture.dead(second!, 2);
}

async function expectOpenAt(aggregateId: string, version: number): Promise<void> {
  const position = await fixture.positions.findOne({ aggregate: { $regex: `/${aggregateId}$` } } as object);
  expect(position).toMatchObject({ version, state: 'open' });
  expect(await fixture.parked.countDocuments({ aggregate: { $regex: `/${aggregateId}$` } })).toBe(0);
}

describe('a dead letter', () => {
  it('is listed with all that is known of it, and shown with what waits behind it', async () => {
    const dead = await deadAt2('listed');
    expect(dead).toMatchObject({
      eventType: 'SampleHappened',
      version: 2,
      attempts: ATTEMPTS,
      failure: { code: 'NP_HANDLER_FAILED', message: 'poison in listed', stack: expect.stringContaining('Error') },
      message: { form: 'original', envelope: { aggregateId: 'listed', data: { value: 2, poison: true } } },
      edited: null,
    });
    expect(dead.firstFailedAt!.getTime()).toBeLessThan(dead.lastFailedAt!.getTime());
    const found = await fixture.deadLetters.list({ reason: 'poison in listed', eventType: 'SampleHappened' });
    expect(found).toEqual([dead]);
    expect(await fixture.deadLetters.list({ reason: 'poison.in.listed' })).toEqual([]);
    expect(await fixture.deadLetters.list({ code: 'NP_DIGEST_MISMATCH' })).toEqual([]);
    await fixture.deadLetters.skip(dead, ben);
  });

  it('that is retried runs with fresh attempts, and what waited behind it follows in order', async () => {
    const dead = await deadAt2('retried');
    fixture.mended.add('retried');
    expect(await fixture.deadLetters.retry(dead, ada)).toEqual({ kind: 'done' });
    const settled = await fixture.settled('retried', 4);
    expect(settled.map(({ outcome }) => outcome)).toEqual(Array(4).fill('applied'));
    expect(settled[1]).toMatchObject({ attempts: 1 });
    const times = settled.map(({ processedAt }) => processedAt.getTime());
    expect(times).toEqual([...times].sort((one, other) => one - other));
    expect(await fixture.valuesOf('retried')).toEqual([1, 2, 3, 4]);
    await expectOpenAt('retried', 4);
    expect(await fixture.actions.find({ eventId: dead.eventId }).toArray()).toMatchObject([
      {
        action: 'retry',
        ...ada,
        group: fixture.group,
        version: 2,
        before: { attempts: ATTEMPTS, revision: dead.revision },
      },
    ]);
  });

  it('that fails again is dead again, and still holds its aggregate', async () => {
    const dead = await deadAt2('hopeless');
    expect(await fixture.deadLetters.retry(dead, ada)).toEqual({ kind: 'done' });
    await expect
      .poll(async () => (await fixture.deadLetters.show(dead.eventId))?.deadLetter.revision, { timeout: 15_000 })
      .toBeGreaterThan(dead.revision + 1);
    const again = await fixture.dead(dead.eventId, 2);
    expect(again.attempts).toBe(ATTEMPTS);
    expect(await fixture.valuesOf('hopeless')).toEqual([1]);
    await fixture.deadLetters.skip(again, ben);
  });

  it('that is edited is applied as the operator wrote it, and the inbox has both digests', async () => {
    const dead = await deadAt2('edited');
    const result = await fixture.deadLetters.editAndRetry(dead, { ...ada, data: { value: 22 } });
    expect(result).toEqual({ kind: 'done' });
    const settled = await fixture.settled('edited', 4);
    expect(await fixture.valuesOf('edited')).toEqual([1, 22, 3, 4]);
    expect(settled[1]).toMatchObject({ outcome: 'applied', digest: dead.message.digest });
    expect(settled[1]!.appliedDigest).not.toBe(dead.message.digest);
    expect(settled.map(({ digest, appliedDigest }) => digest === appliedDigest)).toEqual([true, false, true, true]);
    await expectOpenAt('edited', 4);
    const [action] = await fixture.actions.find({ eventId: dead.eventId }).toArray();
    expect(action).toMatchObject({
      action: 'edit-and-retry',
      ...ada,
      edit: { digest: dead.message.digest, appliedDigest: settled[1]!.appliedDigest },
    });
    expect(Math.abs(action!.at.getTime() - settled[1]!.processedAt.getTime())).toBeLessThan(30_000);
  });

  it('that is edited in vain keeps the message as it came through every edit', async () => {
    const dead = await deadAt2('edited-twice');
    await fixture.deadLetters.editAndRetry(dead, { ...ada, data: { value: 5, poison: true } });
    const original = { original: { digest: dead.message.digest, envelope: dead.message.envelope } };
    await expect
      .poll(async () => (await fixture.deadLetters.show(dead.eventId))?.deadLetter, { timeout: 15_000 })
      .toMatchObject({ message: { envelope: { data: { value: 5 } } }, edited: { ...original, edit: ada } });
    const again = (await fixture.deadLetters.show(dead.eventId))!.deadLetter;
    expect(await fixture.deadLetters.editAndRetry(again, { ...ben, data: { value: 6 } })).toEqual({ kind: 'done' });
    const settled = await fixture.settled('edited-twice', 4);
    expect(settled[1]).toMatchObject({ digest: dead.message.digest });
    expect(await fixture.valuesOf('edited-twice')).toEqual([1, 6, 3, 4]);
  });

  it('refuses an edit that its handler could not be given, and stays as it was', async () => {
    const dead = await deadAt2('refused');
    const edit = (data: unknown) => codeOf(fixture.deadLetters.editAndRetry(dead, { ...ada, data }));
    expect(await edit({ value: 'two' })).toBe('NP_ACTION_INVALID');
    expect(await edit({ value: new Date() })).toBe('NP_PAYLOAD_NOT_JSON');
    expect(await codeOf(fixture.deadLetters.retry(dead, { by: ' ', reason: 'x' }))).toBe('NP_ACTION_INVALID');
    expect(await codeOf(fixture.deadLetters.skip(dead, { by: 'ada', reason: '' }))).toBe('NP_ACTION_INVALID');
    expect(await fixture.dead(dead.eventId, 2)).toEqual(dead);
    expect(await fixture.actions.countDocuments({ eventId: dead.eventId })).toBe(0);
    await fixture.deadLetters.skip(dead, ben);
  });

  it('whose envelope was damaged where it is stored is listed and never applied, and its neighbours go on', async () => {
    const dead = await deadAt2('damaged');
    const neighbour = await deadAt2('beside-damaged');
    await fixture.parked.updateOne({ 'event.eventId': dead.eventId }, { $set: { 'event.envelope': '{"eventId":' } });
    const [listed] = await fixture.deadLetters.list({ reason: 'poison in damaged' });
    expect(listed?.message.envelope).toMatchObject({ eventId: dead.eventId, aggregateVersion: 2, data: '{"eventId":' });
    expect(await codeOf(fixture.deadLetters.editAndRetry(dead, { ...ada, data: { value: 7 } }))).toBe(
      'NP_ACTION_INVALID',
    );
    fixture.mended.add('beside-damaged');
    for (const each of [dead, neighbour]) expect(await fixture.deadLetters.retry(each, ada)).toEqual({ kind: 'done' });
    await fixture.settled('beside-damaged', 4);
    await expect
      .poll(async () => (await fixture.deadLetters.list({ code: 'NP_DIGEST_MISMATCH' })).length, { timeout: 15_000 })
      .toBe(1);
    const [again] = await fixture.deadLetters.list({ code: 'NP_DIGEST_MISMATCH' });
    expect(again).toMatchObject({ eventId: dead.eventId, version: 2, message: { envelope: { data: '{"eventId":' } } });
    // What stands in for the envelope must not have become one.
    expect(await codeOf(fixture.deadLetters.editAndRetry(again!, { ...ada, data: { value: 7 } }))).toBe(
      'NP_ACTION_INVALID',
    );
    expect(await fixture.valuesOf('damaged')).toEqual([1]);
    expect(await fixture.deadLetters.skip(again!, ben)).toEqual({ kind: 'done', verdict: 'skip' });
    await fixture.settled('damaged', 4);
    expect(await fixture.valuesOf('damaged')).toEqual([1, 3, 4]);
  });

  it('that is skipped is settled without effect, and what waited behind it follows in order', async () => {
    const dead = await deadAt2('skipped');
    expect(await fixture.deadLetters.skip(dead, ben)).toEqual({ kind: 'done', verdict: 'skip' });
    const settled = await fixture.settled('skipped', 4);
    expect(settled.map(({ outcome }) => outcome)).toEqual(['applied', 'skipped', 'applied', 'applied']);
    expect(await fixture.valuesOf('skipped')).toEqual([1, 3, 4]);
    await expectOpenAt('skipped', 4);
    // Skipped for good: a copy that comes later is a duplicate.
    expect(await fixture.deadLetters.skip(dead, ben)).toEqual({ kind: 'gone' });
    const more = await fixture.publish('skipped', 5, 5);
    expect((await fixture.settled('skipped', 5))[4]).toMatchObject({ eventId: more[0], outcome: 'applied' });
  });

  it('that is the last of its aggregate leaves it open when it is skipped', async () => {
    const [, second] = await fixture.publish('last', 1, 2);
    const dead = await fixture.dead(second!, 0);
    expect(await fixture.deadLetters.skip(dead, ben)).toEqual({ kind: 'done', verdict: 'skip' });
    await expectOpenAt('last', 2);
    await fixture.publish('last', 3, 3);
    await fixture.settled('last', 3);
  });
});

describe('operators and workers at once', () => {
  it('give a dead letter to one of two operators, and tell the other', async () => {
    const dead = await deadAt2('two operators');
    fixture.mended.add('two operators');
    const results = await Promise.all([
      fixture.deadLetters.skip(dead, ben),
      fixture.deadLetters.retry(dead, ada),
      fixture.deadLetters.skip(dead, ada),
    ]);
    expect(results.filter(({ kind }) => kind === 'done')).toHaveLength(1);
    expect(results.every(({ kind }) => ['done', 'changed', 'gone'].includes(kind))).toBe(true);
    await fixture.settled('two%20operators', 4);
    expect(await fixture.actions.countDocuments({ eventId: dead.eventId })).toBe(1);
    const [one, , three, four] = await fixture.inbox
      .find({ aggregate: /two%20operators$/ } as object)
      .sort({ version: 1 })
      .toArray();
    expect([one, three, four].map((row) => row?.outcome)).toEqual(['applied', 'applied', 'applied']);
  });

  it('never skip what a worker has claimed: the retry wins, or the skip', async () => {
    for (let round = 0; round < 6; round += 1) {
      const aggregateId = `raced-${round}`;
      const dead = await deadAt2(aggregateId);
      fixture.mended.add(aggregateId);
      await fixture.deadLetters.retry(dead, ada);
      // Whoever looks now sees a row that is due, claimed or settled; none of them may be skipped.
      const results = await Promise.all(
        [1, 2, 3].map((later) => fixture.deadLetters.skip({ ...dead, revision: dead.revision + later }, ben)),
      );
      expect(results.map(({ kind }) => kind)).not.toContain('done');
      const settled = await fixture.settled(aggregateId, 4);
      expect(settled.map(({ outcome }) => outcome)).toEqual(Array(4).fill('applied'));
      expect(await fixture.valuesOf(aggregateId)).toEqual([1, 2, 3, 4]);
    }
  });

  it('lose nothing when successors come while a dead letter is skipped', async () => {
    const dead = await deadAt2('busy');
    const [skip] = await Promise.all([fixture.deadLetters.skip(dead, ben), fixture.publish('busy', 5, 12)]);
    expect(skip).toMatchObject({ kind: 'done' });
    await fixture.settled('busy', 12);
    expect(await fixture.valuesOf('busy')).toEqual([1, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
    await expectOpenAt('busy', 12);
  });
});

describe('a bulk request', () => {
  it('acts on every dead letter of a reason, and on no other', async () => {
    const [first, second, other] = [await deadAt2('bulk-one'), await deadAt2('bulk-two'), await deadAt2('apart')];
    const { bulk, results } = await fixture.deadLetters.bulk('skip', { ...ben, filter: { reason: 'poison in bulk-' } });
    expect(results).toEqual(
      [first, second].map(({ eventId: id }) => ({ eventId: id, result: { kind: 'done', verdict: 'skip' } })),
    );
    await fixture.settled('bulk-one', 4);
    await fixture.settled('bulk-two', 4);
    expect(await fixture.actions.countDocuments({ bulk })).toBe(2);
    expect(await fixture.dead(other.eventId, 2)).toEqual(other);
    fixture.mended.add('apart');
    const retried = await fixture.deadLetters.bulk('retry', { ...ada, filter: { eventType: 'SampleHappened' } });
    expect(retried.results).toEqual([{ eventId: other.eventId, result: { kind: 'done' } }]);
    await fixture.settled('apart', 4);
  });

  it('without any condition is refused', async () => {
    expect(await codeOf(fixture.deadLetters.bulk('skip', { ...ben, filter: {} }))).toBe('NP_ACTION_INVALID');
  });
});

describe('a message that was set aside', () => {
  it('is dismissed with a reason, kept, and back when a copy comes', async () => {
    const { client, database, group, deadLetters } = fixture;
    const { store } = createGroupStores({ client, database, group });
    const body = new TextEncoder().encode('{ no json');
    const arrive = () =>
      store.transact((transaction) =>
        transaction.save([
          {
            kind: 'set-aside',
            id: 'm1',
            topic: 'a-topic',
            messageId: 'm1',
            body,
            properties: { [MESSAGE_PROPERTIES.form]: 'original' },
            failure: { code: 'NP_MESSAGE_UNREADABLE', message: 'cannot be read', stack: null },
          },
        ]),
      );
    await arrive();
    const [aside] = await deadLetters.listSetAside();
    expect(aside).toMatchObject({ messageId: 'm1', count: 1, properties: { [MESSAGE_PROPERTIES.form]: 'original' } });
    expect(Buffer.from(aside!.body).toString()).toBe('{ no json');
    await arrive();
    expect(await deadLetters.dismiss(aside!, ben)).toEqual({ kind: 'changed', count: 2 });
    expect(await deadLetters.dismiss({ ...aside!, count: 2 }, ben)).toEqual({ kind: 'done' });
    expect(await deadLetters.listSetAside()).toEqual([]);
    expect(await deadLetters.dismiss({ ...aside!, count: 2 }, ben)).toEqual({ kind: 'gone' });
    const kept = await client.db(database).collection<SetAsideDocument>('parked').findOne({ _id: aside!.id });
    expect(kept).toMatchObject({ state: 'dismissed', dismissal: ben, failure: { code: 'NP_MESSAGE_UNREADABLE' } });
    expect((await deadLetters.actions())[0]).toMatchObject({ action: 'dismiss', target: aside!.id, eventId: null });
    await arrive();
    expect(await deadLetters.listSetAside()).toMatchObject([{ count: 3 }]);
  });
});

it('a dead letter that nobody has is gone', async () => {
  expect(await fixture.deadLetters.retry({ eventId: eventId('none'), revision: 1 }, ada)).toEqual({ kind: 'gone' });
  expect(await fixture.deadLetters.show(eventId('none'))).toBeNull();
});
