import type { DeadLetterCopy } from '@nightporter/consumer';
import { expect, it } from 'vitest';
import { failingFor, start, world } from './consumer-engine.fixture.js';
import { send, settled, type Member } from './consumer-engine.support.js';

const POISON = ['a-1', 'b-1'];

/** A member whose copies go to `sent`, while `send` lets them. */
function startCopier(sent: DeadLetterCopy[], sender: (copy: DeadLetterCopy) => Promise<void>): Member {
  world.group('billing').copiesDeadLetters = true;
  return start({
    handlers: failingFor(new Set(POISON)),
    options: { attemptsMax: 1, copyClaimMs: 5_000 },
    ports: () => ({
      deadLetterCopies: {
        copies: world.groupStores('billing').copies,
        sender: {
          send: async (copy) => {
            await sender(copy);
            sent.push(copy);
          },
        },
      },
    }),
  });
}

const idsOf = (copies: readonly DeadLetterCopy[]): string[] => copies.map(({ event }) => event.envelope.eventId);

it('a dead letter is copied once, with its death, and counted', async () => {
  const sent: DeadLetterCopy[] = [];
  const member = startCopier(sent, () => Promise.resolve());
  send(world, { aggregateId: 'a', version: 1 }, { aggregateId: 'c', version: 1 });
  await world.clock.advance(20_000);
  expect(sent).toMatchObject([
    { event: { envelope: { eventId: 'a-1' } }, attempts: 1, failure: { message: 'poison a-1' } },
  ]);
  expect(member.effects()).toEqual(['c-1']);
  expect(member.consumer.snapshot()).toMatchObject({ deadLettersCopied: 1, copyFailures: 0 });
  expect(world.group('billing').copies()).toEqual([]);
});

it('a copy that cannot be sent keeps no other copy and no event waiting, charges nothing, and is sent in the end', async () => {
  const sent: DeadLetterCopy[] = [];
  let isRefused = true;
  const member = startCopier(sent, ({ event }) =>
    isRefused && event.envelope.eventId === 'a-1' ? Promise.reject(new Error('no such topic')) : Promise.resolve(),
  );
  send(world, { aggregateId: 'a', version: 1 }, { aggregateId: 'b', version: 1 }, { aggregateId: 'c', version: 1 });
  await world.clock.advance(20_000);
  expect(idsOf(sent)).toEqual(['b-1']);
  expect(member.effects()).toEqual(['c-1']);
  expect(member.consumer.snapshot().copyFailures).toBeGreaterThan(1);
  expect(member.parked().map(({ attempts }) => attempts)).toEqual([1, 1]);
  isRefused = false;
  await world.clock.advance(6_000);
  expect(idsOf(sent)).toEqual(['b-1', 'a-1']);
});

it('a copy is sent though its dead letter has been skipped meanwhile', async () => {
  const sent: DeadLetterCopy[] = [];
  let isRefused = true;
  startCopier(sent, () => (isRefused ? Promise.reject(new Error('the broker is down')) : Promise.resolve()));
  send(world, { aggregateId: 'a', version: 1 });
  await settled(world);
  const [row] = world.group('billing').parked();
  expect(world.group('billing').skipDead(row!.event.aggregate, row!.event.envelope.aggregateVersion)).toBe(true);
  isRefused = false;
  await world.clock.advance(10_000);
  expect(idsOf(sent)).toEqual(['a-1']);
});
