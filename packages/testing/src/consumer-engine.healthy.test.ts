import { describe, expect, test } from 'vitest';
import { world, start, history, position, isDrained } from './consumer-engine.fixture.js';
import { send, settled } from './consumer-engine.support.js';

describe('a healthy group', () => {
  test('applies each event once, in order, and acknowledges after the commit', async () => {
    const member = start();
    send(world, ...history('a', 3), ...history('b', 2));
    await settled(world);
    expect(member.effects()).toEqual(['a-1', 'a-2', 'a-3', 'b-1', 'b-2']);
    expect(position('a')).toEqual({ version: 3, startVersion: 0, state: 'open' });
    expect(member.consumer.snapshot()).toMatchObject({ received: 5, applied: 5, acknowledged: 5, duplicates: 0 });
    expect(isDrained()).toBe(true);
  });

  test('applies an event that is delivered twice once, and acknowledges the second at once', async () => {
    const member = start();
    send(world, { aggregateId: 'a', version: 1 }, { aggregateId: 'a', version: 1 });
    await settled(world);
    expect(member.effects()).toEqual(['a-1']);
    expect(member.consumer.snapshot()).toMatchObject({ applied: 1, duplicates: 1, acknowledged: 2 });
    expect(member.inbox()).toMatchObject([{ eventId: 'a-1', duplicates: 1 }]);
  });

  test('leaves the effect of an event to every group', async () => {
    const billing = start();
    const shipping = start({ group: 'shipping' });
    send(world, ...history('a', 2));
    await settled(world);
    expect(billing.effects()).toEqual(['a-1', 'a-2']);
    expect(shipping.effects()).toEqual(['a-1', 'a-2']);
  });

  test('settles a tombstone as skipped, and a type without handler as ignored', async () => {
    const member = start();
    send(
      world,
      { aggregateId: 'a', version: 1, form: 'tombstone' },
      { aggregateId: 'a', version: 2, eventType: 'constructor' },
      { aggregateId: 'a', version: 3 },
    );
    await settled(world);
    expect(member.inbox().map(({ outcome }) => outcome)).toEqual(['skipped', 'ignored', 'applied']);
    expect(member.effects()).toEqual(['a-3']);
  });

  test('commits what a handler emits with the event, named as its consequence', async () => {
    const member = start({
      handlers: {
        OrderPaid: ({ emit }) =>
          emit({ aggregateType: 'invoice', aggregateId: 'i', eventType: 'InvoiceSent', payload: { amount: 1 } }),
      },
    });
    send(world, { aggregateId: 'a', version: 1 });
    await settled(world);
    expect(member.consumer.snapshot().applied).toBe(1);
    const rows = [...world.database.outbox.rows()];
    expect(rows).toMatchObject([{ eventType: 'InvoiceSent', headers: { causationId: 'a-1', correlationId: 'a-1' } }]);
  });

  test('takes the rest of a slow batch into the next transaction', async () => {
    const commits: number[] = [];
    start({
      options: { transactionMs: 1_000, invisibleMs: 10_000 },
      handlers: {
        OrderPaid: () =>
          new Promise((resolve) => {
            world.clock.after(600, resolve);
          }),
      },
    });
    world.group('billing').onCommitted = ({ settled: records }) => commits.push(records.length);
    send(world, ...history('a', 5));
    await world.clock.advance(4_000);
    expect(commits).toEqual([2, 2, 1]);
  });
});
