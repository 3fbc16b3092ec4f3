import {
  CONSUMER_COLLECTIONS,
  copyReplayStarts,
  durableDatabase,
  ensureConsumerCollections,
  finishReplayGroup,
  guarded,
  recordAction,
  registerReplayGroup,
  runAction,
  type OperatorActionDocument,
  type ReplayGroup,
} from '@nightporter/mongo';
import type { ObjectId } from 'mongodb';
import { setTimeout as delay } from 'node:timers/promises';
import { assertDecision, invalid } from '../requests.js';
import type { Into, Replay, ReplayOptions, ReplayPlan, ReplayRequest, ReplayResult, Selection } from './contract.js';
import { parkChain, type Chain, type Counts } from './park.js';
import { assertSelection, selectionText } from './selection.js';
import { survey, type Survey } from './survey.js';
import { standingsOf, worldOf, type Producer, type World } from './world.js';

/** Throws NP_ACTION_INVALID for an option that is out of range. */
export function createReplay(options: ReplayOptions): Replay {
  const world = worldOf(options);
  return {
    plan: (request) => plan(world, request),
    run: (request) => run(world, request),
  };
}

async function plan(world: World, request: Selection & { into: Into }): Promise<ReplayPlan> {
  assertSelection(request);
  const standings = await standingsOf(world, request.into);
  const untilMs = await untilOf(world, request);
  const total = { events: 0, aggregates: 0, missing: 0 };
  let first: ReplayPlan['first'] = null;
  let last: ReplayPlan['last'] = null;
  for (const producer of world.producers) {
    const found = await survey(world, producer, { selection: request, untilMs });
    total.events += found.events;
    total.aggregates += found.versions.size;
    if (found.first !== null && (first === null || found.first.publishedAt < first.publishedAt)) first = found.first;
    if (found.last !== null && (last === null || found.last.publishedAt > last.publishedAt)) last = found.last;
    if (request.into === 'new-group') total.missing += found.events;
    else {
      const scope = { kind: 'missing', standing: standings.get(producer) ?? null, isDryRun: true } as const;
      total.missing += (await parkAll(world, [{ producer, found, scope }], null)).parked;
    }
  }
  return { ...total, first, last };
}

async function run(world: World, request: ReplayRequest): Promise<ReplayResult> {
  assertDecision(request);
  assertSelection(request);
  assertRate(request);
  const standings = await standingsOf(world, request.into);
  await ensureConsumerCollections(world.client, world.database);
  if (request.into === 'new-group' && [...standings.values()].every((standing) => standing === null)) {
    await assertEmpty(world);
  }
  const record = await recordStart(world, request);
  const { counts, surveys } = await (request.into === 'new-group'
    ? intoNewGroup(world, request)
    : intoRegistered(world, request, standings));
  const result: ReplayResult = {
    events: surveys.reduce((sum, { events }) => sum + events, 0),
    aggregates: surveys.reduce((sum, { versions }) => sum + versions.size, 0),
    ...counts,
  };
  await recordEnd(world, record, result);
  return result;
}

interface Done {
  readonly surveys: readonly Survey[];
  readonly counts: Counts;
}

/**
 * The group stands in every producer's `groups` before anything is looked at, so that retention keeps it all; its workers are let in once
 * everything is parked. In between nobody else writes what the group has.
 */
async function intoNewGroup(world: World, request: ReplayRequest): Promise<Done> {
  const { client, database, group } = world;
  const selection = selectionText(request);
  const prepared: { producer: Producer; entry: ReplayGroup; floorMs: number }[] = [];
  for (const producer of world.producers) {
    const { database: producerDatabase, topics } = producer;
    const entry = { client, producerDatabase, group, topics, database, selection };
    prepared.push({ producer, entry, ...(await registerReplayGroup(entry)) });
  }
  const parts: Part[] = [];
  for (const { entry, floorMs, producer } of prepared) {
    await untilAged(world, floorMs);
    const found = await survey(world, producer, { selection: request, untilMs: floorMs });
    await copyReplayStarts(entry, new Map([...found.versions].map(([key, versions]) => [key, versions[0] ?? 1])));
    parts.push({ producer, found, scope: { kind: 'whole', floorMs } });
  }
  const counts = await parkAll(world, parts, request.ratePerSecond ?? null);
  for (const { entry } of prepared) await finishReplayGroup(entry);
  return { surveys: parts.map(({ found }) => found), counts };
}

const WAIT_MS = 100;

/** A mark of the moment of the registration may become visible later than that. */
async function untilAged({ clock, lagMs }: World, floorMs: number): Promise<void> {
  while ((await clock.read()).getTime() - floorMs <= lagMs) await delay(WAIT_MS);
}

async function intoRegistered(
  world: World,
  request: ReplayRequest,
  standings: Awaited<ReturnType<typeof standingsOf>>,
): Promise<Done> {
  const untilMs = await untilOf(world, request);
  const parts: Part[] = [];
  for (const producer of world.producers) {
    const found = await survey(world, producer, { selection: request, untilMs });
    const standing = standings.get(producer) ?? null;
    parts.push({ producer, found, scope: { kind: 'missing', standing, isDryRun: false } });
  }
  const counts = await parkAll(world, parts, request.ratePerSecond ?? null);
  return { surveys: parts.map(({ found }) => found), counts };
}

interface Part {
  readonly producer: Producer;
  readonly found: Survey;
  readonly scope: Chain['scope'];
}

/** The rate is kept by when what is parked becomes due, so that it holds although this process ends. */
async function parkAll(world: World, parts: readonly Part[], ratePerSecond: number | null): Promise<Counts> {
  const total = { parked: 0, skipped: 0, known: 0, conflicts: 0 };
  for (const { found, producer, scope } of parts) {
    for (const [aggregate, versions] of found.versions) {
      const dueInMs = ratePerSecond === null ? 0 : Math.floor((total.parked * 1_000) / ratePerSecond);
      const counts = await parkChain(world, { aggregate, producer, versions, scope, dueInMs });
      total.parked += counts.parked;
      total.skipped += counts.skipped;
      total.known += counts.known;
      total.conflicts += counts.conflicts;
    }
  }
  return total;
}

const RATE_MAX = 100_000;

function assertRate({ ratePerSecond }: ReplayRequest): void {
  if (ratePerSecond === undefined || (ratePerSecond > 0 && ratePerSecond <= RATE_MAX)) return;
  throw invalid(`ratePerSecond of the replay is ${ratePerSecond}; accepted: more than 0, up to ${RATE_MAX}.`);
}

/** Positions that an earlier group of the name has left would stand in the way of the new one's. */
async function assertEmpty({ client, database: name, group }: World): Promise<void> {
  const database = durableDatabase(client, name);
  for (const collection of [CONSUMER_COLLECTIONS.positions, CONSUMER_COLLECTIONS.inbox, CONSUMER_COLLECTIONS.parked]) {
    const documents = database.collection<{ _id: string; group: string }>(collection);
    const found = await guarded(`reading ${documents.namespace}`, () => documents.findOne({ group }));
    if (found === null) continue;
    throw invalid(
      `${documents.namespace} has documents of group ${group}, which is not registered; accepted: a name that was never used, or one whose ` +
        'data removeGroup has deleted.',
    );
  }
}

/** Before anything is written, so that nothing an operator began can be missing from the records. */
async function recordStart(world: World, request: ReplayRequest): Promise<ObjectId> {
  const { client, database, group } = world;
  const { by, into, ratePerSecond = null, reason } = request;
  const details = { into, selection: selectionText(request), ratePerSecond };
  return runAction(client, `recording the replay into group ${group}`, (session) =>
    recordAction(durableDatabase(client, database), session, { action: 'replay', target: group, details, by, reason }),
  );
}

async function recordEnd({ client, database, group }: World, record: ObjectId, result: ReplayResult): Promise<void> {
  const actions = durableDatabase(client, database).collection<OperatorActionDocument>(CONSUMER_COLLECTIONS.actions);
  await guarded(`recording the replay into group ${group}`, () =>
    actions.updateOne({ _id: record }, { $set: { outcome: { ...result } } }),
  );
}

/** A walk over what is published leaves out the last moments, in which a mark may become visible late. Named aggregates are read version by version. */
async function untilOf({ clock, lagMs }: World, { aggregates }: Selection): Promise<number> {
  return aggregates === undefined ? (await clock.read()).getTime() - lagMs : Number.MAX_SAFE_INTEGER;
}
