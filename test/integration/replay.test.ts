import { createCatalogue, defineEvent, type OutboxDocument } from '@nightporter/contracts';
import { createReplay, type ReplayOptions } from '@nightporter/ledger';
import {
  CONSUMER_COLLECTIONS,
  connectMongo,
  ensureConsumerCollections,
  ensureOutboxCollections,
  registerGroup,
  registerReplayGroup,
  type GroupDocument,
  type InboxDocument,
  type OperatorActionDocument,
  type ParkedDocument,
  type PositionDocument,
} from '@nightporter/mongo';
import { createOutbox, type Outbox } from '@nightporter/outbox';
import { aggregateKey, aggregateVersion, brokerGroup, groupId, type AggregateKey } from '@nightporter/protocol';
import { createLogger, loadConfig, type RunningService } from '@nightporter/runtime';
import { defineConsumer } from '@nightporter/worker';
import type { MongoClient } from 'mongodb';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { createGroup, createTopic, sharedStack, uniqueName } from '../support/stack.js';
import { untilGiven } from './rocketmq-samples.js';

const LIMIT_MS = 30_000;
const decision = { by: 'ada', reason: 'the projection was wrong' };

/** What the handlers have seen, in that order. */
interface EffectDocument {
  readonly group: string;
  readonly aggregateId: string;
  readonly version: number;
  readonly at: Date;
}

let client: MongoClient;
let topic: string;
let producer: string;
let consumer: string;
let group: string;
let outbox: Outbox;
let catalogue: ReturnType<typeof catalogueOn>;
const running: RunningService[] = [];

function catalogueOn(onTopic: string) {
  const schema = z.strictObject({ value: z.number() });
  const of = (type: string) => defineEvent({ type, version: 1, aggregateType: 'sample', topic: onTopic, schema });
  return createCatalogue([of('SampleHappened'), of('SampleNoted')]);
}

beforeEach(async () => {
  topic = await createTopic({ name: uniqueName('replay') });
  [producer, consumer, group] = [uniqueName('producer'), uniqueName('consumer'), uniqueName('points')];
  for (const name of [group, `${group}@2`]) await createGroup({ name: brokerGroup(groupId(name)), topics: [topic] });
  client = await connectMongo({ uri: sharedStack().mongodbUri });
  await ensureOutboxCollections(client, producer);
  catalogue = catalogueOn(topic);
  outbox = createOutbox({ client, database: producer, source: 'replay-tests', catalogue });
});
afterEach(async () => {
  await Promise.all(running.splice(0).map((service) => service.stop()));
  await client.close();
});

const key = (aggregateId: string): AggregateKey =>
  aggregateKey({ source: 'replay-tests', aggregateType: 'sample', aggregateId });

/** Commits `count` events per aggregate, every second one a note, and marks them as a relay does. */
async function publish(aggregateIds: readonly string[], count: number): Promise<void> {
  for (let index = 0; index < count; index += 1) {
    await outbox.transaction(async ({ emit }) => {
      for (const aggregateId of aggregateIds) {
        const eventType = index % 2 === 0 ? 'SampleHappened' : 'SampleNoted';
        await emit({ aggregateType: 'sample', aggregateId, eventType, payload: { value: index + 1 } });
      }
    });
    await client
      .db(producer)
      .collection<OutboxDocument>('outbox')
      .updateMany({ status: 'PENDING' }, [
        { $set: { status: 'PUBLISHED', publishedAt: '$$NOW' } },
        { $unset: 'unsettled' },
      ]);
  }
}

async function startWorker(name: string): Promise<void> {
  const worker = defineConsumer({
    name: 'replay-tests',
    description: 'Notes what it sees.',
    port: 0,
    database: consumer,
    group,
    source: 'replay-tests-consumer',
    catalogue,
    subscriptions: [{ producer, topic, topicSetting: 'TOPIC' }],
    handlers: ({ database }) => {
      const see = async ({
        event,
        session,
      }: {
        event: { aggregateId: string; aggregateVersion: number };
        session: never;
      }) => {
        const effect = { group: name, aggregateId: event.aggregateId, version: event.aggregateVersion, at: new Date() };
        await database.collection<EffectDocument>('effects').insertOne(effect, { session });
      };
      return { SampleHappened: see as never, SampleNoted: see as never };
    },
    prepare: async ({ database }) => {
      await database.createCollection('effects').catch(() => undefined);
    },
  });
  const { mongodbUri, rocketmqEndpoints } = sharedStack();
  const config = loadConfig(worker.config, {
    MONGODB_URI: mongodbUri,
    ROCKETMQ_ENDPOINTS: rocketmqEndpoints,
    GROUP: name,
    RECEIVE_LOOPS: '2',
    LEDGER_SWEEP_EVERY_MS: '1000',
    LEDGER_LAG_MS: '1000',
  });
  const logger = createLogger({ name: 'replay-tests', level: 'silent' });
  running.push(await worker.start({ config, logger, signal: new AbortController().signal }));
}

const replayOf = (into: string, options: Partial<ReplayOptions> = {}) =>
  createReplay({
    client,
    database: consumer,
    group: into,
    producers: [{ database: producer, topics: [topic] }],
    lagMs: 500,
    ...options,
  });

const own = () => client.db(consumer);
const inboxOf = (name: string) =>
  own().collection<InboxDocument>(CONSUMER_COLLECTIONS.inbox).find({ group: name }).sort({ _id: 1 }).toArray();
const positionsOf = (name: string) =>
  own().collection<PositionDocument>(CONSUMER_COLLECTIONS.positions).find({ group: name }).sort({ _id: 1 }).toArray();
const parkedOf = (name: string) =>
  own().collection<ParkedDocument>(CONSUMER_COLLECTIONS.parked).find({ group: name }).sort({ _id: 1 }).toArray();
const groups = () => client.db(producer).collection<GroupDocument>('groups');

/** Versions as the handlers saw them, by aggregate. */
async function seenBy(name: string): Promise<Record<string, number[]>> {
  const effects = await own().collection<EffectDocument>('effects').find({ group: name }).sort({ _id: 1 }).toArray();
  const seen: Record<string, number[]> = {};
  for (const { aggregateId, version } of effects) (seen[aggregateId] ??= []).push(version);
  return seen;
}

const untilSettled = (name: string, count: number) =>
  untilGiven(
    async () => {
      const found = await inboxOf(name);
      return found.length >= count ? found : null;
    },
    { limitMs: LIMIT_MS, what: `${count} settled events of ${name}` },
  );

/** Everything that the group knows, and its entry but for the sweep that goes on. */
async function everythingOf(name: string) {
  const entry = await groups().findOne({ _id: name }, { projection: { sweeper: 0, watermark: 0 } });
  return { inbox: await inboxOf(name), positions: await positionsOf(name), parked: await parkedOf(name), entry };
}

describe('a replay into a new generation', () => {
  it('gives its worker exactly the selected aggregates, in order, and what comes later of all, and leaves the first generation as it was', async () => {
    await startWorker(group);
    await publish(['a', 'b', 'c'], 6);
    await untilSettled(group, 18);
    const before = await everythingOf(group);
    const second = `${group}@2`;
    const result = await replayOf(second).run({
      into: 'new-group',
      aggregates: [key('a'), key('c')],
      ...decision,
    });
    expect(result).toEqual({ events: 12, aggregates: 2, parked: 12, skipped: 0, known: 0, conflicts: 0 });
    await startWorker(second);
    await untilSettled(second, 12);
    expect(await seenBy(second)).toEqual({ a: [1, 2, 3, 4, 5, 6], c: [1, 2, 3, 4, 5, 6] });
    expect(await everythingOf(group)).toEqual(before);

    await publish(['a', 'b'], 1);
    await untilSettled(second, 14);
    await untilSettled(group, 20);
    expect(await seenBy(second)).toEqual({ a: [1, 2, 3, 4, 5, 6, 7], b: [7], c: [1, 2, 3, 4, 5, 6] });
    expect(await parkedOf(second)).toEqual([]);
    const actions = own().collection<OperatorActionDocument>('operator_actions');
    expect(await actions.find().toArray()).toMatchObject([
      { action: 'replay', target: second, ...decision, details: { into: 'new-group' }, outcome: { parked: 12 } },
    ]);
  });

  it('settles as skipped what lies among the selected events and is not selected, so that the sequence holds', async () => {
    await publish(['a'], 5);
    const second = `${group}@2`;
    const result = await replayOf(second).run({ into: 'new-group', eventTypes: ['SampleNoted'], ...decision });
    expect(result).toMatchObject({ events: 2, aggregates: 1, parked: 2, skipped: 2 });
    await startWorker(second);
    await untilSettled(second, 4);
    expect(await seenBy(second)).toEqual({ a: [2, 4] });
    expect((await inboxOf(second)).map(({ outcome, version }) => [version, outcome])).toEqual([
      [2, 'applied'],
      [3, 'skipped'],
      [4, 'applied'],
      [5, 'skipped'],
    ]);
    expect(await positionsOf(second)).toMatchObject([{ startVersion: 1, version: 5, state: 'open' }]);
  });

  it('selects by the time of publication', async () => {
    await publish(['a'], 2);
    const [row] = await client
      .db(producer)
      .collection<OutboxDocument>('outbox')
      .find({ aggregateVersion: aggregateVersion(2) })
      .toArray();
    const publishedFrom = new Date((row?.publishedAt as Date).getTime() + 1);
    await publish(['a', 'b'], 2);
    const plan = await replayOf(`${group}@2`, { lagMs: 0 }).plan({ into: 'new-group', publishedFrom });
    expect(plan).toMatchObject({ events: 4, aggregates: 2, missing: 4, first: { publishedAt: expect.any(Date) } });
    expect(plan.first!.publishedAt >= publishedFrom).toBe(true);
    expect(await groups().countDocuments({ _id: `${group}@2` })).toBe(0);
    expect(await own().listCollections().toArray()).toEqual([]);
    const ends = await replayOf(`${group}@2`, { lagMs: 0 }).plan({ into: 'new-group', publishedBefore: publishedFrom });
    expect(ends).toMatchObject({ events: 2, aggregates: 1 });
  });

  it('spreads what becomes due over time where a rate is given', async () => {
    await publish(['a', 'b', 'c'], 2);
    const second = `${group}@2`;
    await replayOf(second).run({ into: 'new-group', eventTypes: ['SampleHappened'], ratePerSecond: 1, ...decision });
    const due = (await parkedOf(second))
      .filter(({ state }) => state === 'retry')
      .map(({ nextRetryAt }) => nextRetryAt!.getTime());
    due.sort((one, other) => one - other);
    expect(due).toHaveLength(3);
    expect(due[1]! - due[0]!).toBeGreaterThan(900);
    expect(due[2]! - due[1]!).toBeGreaterThan(900);
  });

  it('lets no worker start and no retention pass before it is prepared, and the same replay again completes it', async () => {
    await publish(['a', 'b'], 3);
    const second = `${group}@2`;
    const request = { into: 'new-group', aggregates: [key('a')], ...decision } as const;
    const selection = JSON.stringify({
      aggregates: [key('a')],
      eventTypes: null,
      publishedFrom: null,
      publishedBefore: null,
    });
    const entry = { client, producerDatabase: producer, group: second, topics: [topic], database: consumer, selection };
    await registerReplayGroup(entry);
    // As if the replay had died here.
    await expect(startWorker(second)).rejects.toMatchObject({ code: 'NP_REPLAY_UNFINISHED' });
    expect((await groups().findOne({ _id: second }))?.watermark).toEqual(new Date(0));
    const other = replayOf(second).run({ ...request, aggregates: [key('b')] });
    await expect(other).rejects.toMatchObject({ code: 'NP_REPLAY_UNFINISHED' });
    expect(await replayOf(second).run(request)).toMatchObject({ parked: 3, known: 0 });
    await startWorker(second);
    await untilSettled(second, 3);
    expect(await seenBy(second)).toEqual({ a: [1, 2, 3] });
    const { floor, state, watermark } = (await groups().findOne({ _id: second }))!;
    expect({ isPast: watermark >= floor, state }).toEqual({ isPast: true, state: 'live' });
  });
});

describe('a replay of what is missing', () => {
  /** A group that had settled everything, and whose database went back to before version 3 of `a`. */
  async function restored(): Promise<void> {
    await startWorker(group);
    await publish(['a', 'b'], 4);
    await untilSettled(group, 8);
    await Promise.all(running.splice(0).map((service) => service.stop()));
    await groups().updateOne({ _id: group }, [{ $set: { state: 'live', watermark: { $add: ['$$NOW', 120_000] } } }]);
    const aggregate = key('a');
    await own()
      .collection<InboxDocument>('inbox')
      .deleteMany({ group, aggregate, version: { $gt: 2 } });
    await own()
      .collection<EffectDocument>('effects')
      .deleteMany({ aggregateId: 'a', version: { $gt: 2 } });
    await own()
      .collection<PositionDocument>('positions')
      .updateOne({ group, aggregate }, { $set: { version: 2 } });
  }

  it('parks only that, for the workers to run, and says before how much it is', async () => {
    await restored();
    const before = await inboxOf(group);
    const replay = replayOf(group, { lagMs: 0 });
    const selection = { publishedFrom: new Date(0) };
    const plan = await replay.plan({ into: 'what-is-missing', ...selection });
    expect(plan).toMatchObject({ events: 8, aggregates: 2, missing: 2 });
    expect(await parkedOf(group)).toEqual([]);
    const result = await replay.run({ into: 'what-is-missing', ...selection, ...decision });
    expect(result).toMatchObject({ parked: 2, skipped: 0, known: 6, conflicts: 0 });
    expect((await parkedOf(group)).map(({ attempts, state, version }) => ({ attempts, state, version }))).toEqual([
      { attempts: 0, state: 'retry', version: 3 },
      { attempts: 0, state: 'behind', version: 4 },
    ]);
    await startWorker(group);
    await untilSettled(group, 8);
    expect(await seenBy(group)).toEqual({ a: [1, 2, 3, 4], b: [1, 2, 3, 4] });
    expect(await inboxOf(group)).toEqual(expect.arrayContaining(before));
    expect(await replay.run({ into: 'what-is-missing', ...selection, ...decision })).toMatchObject({
      parked: 0,
      known: 8,
    });
  });

  it('takes for lost, as the workers do, what a live group must have settled long ago', async () => {
    await restored();
    const result = await replayOf(group, { lagMs: 0, inboxRetentionMs: 2 }).run({
      into: 'what-is-missing',
      aggregates: [key('a')],
      ...decision,
    });
    expect(result).toMatchObject({ parked: 2 });
    expect((await parkedOf(group)).map(({ failure, state }) => [state, failure?.code])).toEqual([
      ['dead', 'NP_POSITION_LOST'],
      ['dead', 'NP_POSITION_LOST'],
    ]);
  });
});

describe('a replay is refused', () => {
  it.each([
    ['that selects everything', {}],
    ['of no types', { eventTypes: [] }],
    ['without a reason', { eventTypes: ['SampleHappened'], reason: '' }],
    ['at no rate', { eventTypes: ['SampleHappened'], ratePerSecond: 0 }],
    ['into a group that is not there', { eventTypes: ['SampleHappened'], into: 'what-is-missing' as const }],
  ])('%s', async (_name, given) => {
    await ensureConsumerCollections(client, consumer);
    const refused = replayOf(`${group}@2`).run({ into: 'new-group', ...decision, ...given });
    await expect(refused).rejects.toMatchObject({ code: 'NP_ACTION_INVALID' });
    expect(await groups().countDocuments({})).toBe(0);
  });

  it('into a new group that is registered, or that has left documents, or of more events than it may hold', async () => {
    await publish(['a'], 3);
    const request = { into: 'new-group', eventTypes: ['SampleHappened'], ...decision } as const;
    const few = replayOf(group, { eventsMax: 1, lagMs: 0 }).plan(request);
    await expect(few).rejects.toMatchObject({ message: expect.stringContaining('More than 1 events') });
    await ensureConsumerCollections(client, consumer);
    const left = { _id: `${group}|x`, group } as unknown as PositionDocument;
    await own().collection<PositionDocument>('positions').insertOne(left);
    await expect(replayOf(group).run(request)).rejects.toMatchObject({ message: expect.stringContaining('positions') });
    await own().collection<PositionDocument>('positions').deleteOne({ _id: left._id });
    await registerGroup(client, producer, { group, topics: [topic] });
    await expect(replayOf(group).run(request)).rejects.toMatchObject({
      message: expect.stringContaining('registered'),
    });
  });
});
