import { createCatalogue, defineEvent } from '@nightporter/contracts';
import { ensureOutboxCollections } from '@nightporter/mongo';
import { createOutbox, type Outbox } from '@nightporter/outbox';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { z } from 'zod';
import { buildPrograms, until, untilReady, type Program } from '../../e2e/programs.js';
import { showFigures } from '../../support/figures.js';
import { sharedStack } from '../../support/stack.js';
import { createRelayWorld, type RelayWorld } from '../support/relay-world.js';

/** Faults that others have met and reported, each met by a relay process at work. */

const PUBLISHED_WITHIN_MS = 20_000;

let world: RelayWorld;
let relay: Program;
let outbox: Outbox;

beforeAll(async () => {
  buildPrograms('services/relay');
  world = await createRelayWorld({ servers: sharedStack() });
  const [topic = ''] = world.topics;
  const noted = defineEvent({ type: 'Noted', version: 1, aggregateType: 'note', topic, schema: z.unknown() });
  const { client, database } = world;
  outbox = createOutbox({ client, database, source: 'proof', catalogue: createCatalogue([noted]) });
  relay = world.startRelay();
  await untilReady(relay);
  // What follows meets a relay that follows the stream.
  await write('warm-up');
  await world.untilPublished(1, PUBLISHED_WITHIN_MS);
});
afterAll(() => world.close());

it('The transaction that opened first commits last: both of their events are published', async (context) => {
  const before = await world.messageCount();
  let release = (): void => undefined;
  const held = new Promise<void>((resolve) => {
    release = resolve;
  });
  let opened = (): void => undefined;
  const isOpen = new Promise<void>((resolve) => {
    opened = resolve;
  });
  const first = outbox.transaction(async ({ emit }) => {
    await emit(event('opened first'));
    opened();
    await held;
  });
  await isOpen;
  await write('opened second');
  await until('the second is published', async () => (await world.messageCount()) === before + 1, PUBLISHED_WITHIN_MS);
  release();
  await first;
  await untilAllPublished();
  const { violations, counts } = await world.judge();
  showFigures(context, counts);
  expect(violations).toEqual([]);
  expect(await world.messageCount()).toBe(before + 2);
});

it('A row of the outbox that is deleted right after its insert is published all the same', async (context) => {
  const before = await world.messageCount();
  // Stopped, so that it surely looks the row up too late; far shorter than its lease.
  relay.signal('SIGSTOP');
  try {
    await write('deleted');
    await world.rows.deleteMany({ aggregateId: 'deleted' });
  } finally {
    relay.signal('SIGCONT');
  }
  await until('the event is published', async () => (await world.messageCount()) > before, PUBLISHED_WITHIN_MS);
  showFigures(context, { rowsLeft: await world.rows.countDocuments({ aggregateId: 'deleted' }), published: 1 });
  expect(await world.messageCount()).toBe(before + 1);
});

it('An outbox that is dropped and created again while the relay runs is relayed on', async (context) => {
  const before = await world.messageCount();
  await world.rows.drop();
  await ensureOutboxCollections(world.client, world.database);
  await write('after the drop');
  const sinceMs = performance.now();
  await until('the event is published', async () => (await world.messageCount()) > before, 60_000);
  await untilAllPublished();
  showFigures(context, { recoveredMs: Math.round(performance.now() - sinceMs) });
  const indexes = await world.rows.indexes();
  expect(indexes.map(({ name }) => name)).toContain('aggregate_version');
});

const event = (aggregateId: string) => ({ aggregateType: 'note', aggregateId, eventType: 'Noted', payload: {} });

async function write(aggregateId: string): Promise<void> {
  await outbox.transaction(({ emit }) => emit(event(aggregateId)));
}

async function untilAllPublished(): Promise<void> {
  const isPublished = async () => (await world.rows.countDocuments({ unsettled: true })) === 0;
  await until('every row is published', isPublished, PUBLISHED_WITHIN_MS);
}
