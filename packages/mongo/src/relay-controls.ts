import { NightporterError, type Pause } from '@nightporter/protocol';
import type { RelayControls } from '@nightporter/relay';
import type { Collection, Db, MongoClient } from 'mongodb';
import { RELAY_COLLECTIONS } from './collections.js';
import { durableDatabase } from './database.js';
import type { PauseDocument } from './documents.js';
import { guarded } from './driver-errors.js';
import { assertOperator, literals, recordAction, runAction, type Operator } from './operator-actions.js';

/** What to pause or resume. */
export interface PauseRequest extends Operator {
  /** Null: everything, whatever the topic. */
  readonly topic: string | null;
}

export type PauseOutcome =
  | { readonly kind: 'done' }
  /** It is so already: paused by somebody else, or not paused at all. Nothing was written. */
  | { readonly kind: 'unchanged'; readonly standing: PauseDocument | null };

const ALL = 'all';
const TOPIC = 'topic:';
/** As the broker allows them. */
const TOPIC_PATTERN = /^[%|a-zA-Z0-9_-]{1,127}$/;

/** What operators have paused, as every relay of this database reads it. */
export function createRelayControls(database: Db): RelayControls {
  const controls = controlsOf(database);
  return {
    readPause: () =>
      guarded(`reading ${database.databaseName}.${RELAY_COLLECTIONS.controls}`, async () => {
        const ids = (await controls.find({}, { projection: { _id: 1 } }).toArray()).map(({ _id }) => _id);
        return pauseOf(ids);
      }),
  };
}

/**
 * Has every relay of this database stop sending, everything or one topic, within a second or two: rows stay PENDING. On record in
 * `operator_actions`. Rejects with NP_ACTION_INVALID or NP_STORE_UNAVAILABLE.
 */
export async function pauseRelay(
  client: MongoClient,
  relayDatabase: string,
  request: PauseRequest,
): Promise<PauseOutcome> {
  const { target, database, controls } = prepare(client, relayDatabase, request);
  const { by, reason } = request;
  return runAction(client, `pausing ${target} in ${controls.namespace}`, async (session) => {
    const standing = await controls.findOne({ _id: target }, { session });
    if (standing !== null) return { kind: 'unchanged', standing };
    const pause = [{ $set: { ...literals({ by, reason }), at: '$$NOW' } }];
    await controls.updateOne({ _id: target }, pause, { session, upsert: true });
    await recordAction(database, session, { action: 'pause', target, by, reason });
    return { kind: 'done' };
  });
}

/**
 * Takes a pause back: what waited goes on in order. A topic that was paused by itself stays paused when everything is resumed. On record
 * in `operator_actions`. Rejects with NP_ACTION_INVALID or NP_STORE_UNAVAILABLE.
 */
export async function resumeRelay(
  client: MongoClient,
  relayDatabase: string,
  request: PauseRequest,
): Promise<PauseOutcome> {
  const { target, database, controls } = prepare(client, relayDatabase, request);
  const { by, reason } = request;
  return runAction(client, `resuming ${target} in ${controls.namespace}`, async (session) => {
    const { deletedCount } = await controls.deleteOne({ _id: target }, { session });
    if (deletedCount === 0) return { kind: 'unchanged', standing: null };
    await recordAction(database, session, { action: 'resume', target, by, reason });
    return { kind: 'done' };
  });
}

function prepare(
  client: MongoClient,
  relayDatabase: string,
  request: PauseRequest,
): { readonly target: string; readonly database: Db; readonly controls: Collection<PauseDocument> } {
  assertOperator(request);
  const { topic } = request;
  if (topic !== null && !TOPIC_PATTERN.test(topic)) {
    const accepted = 'accepted: 1 to 127 letters, digits, "_", "-", "%" or "|"';
    throw new NightporterError('NP_ACTION_INVALID', `Topic ${JSON.stringify(topic)} cannot be; ${accepted}.`);
  }
  const database = durableDatabase(client, relayDatabase);
  return { target: topic === null ? ALL : `${TOPIC}${topic}`, database, controls: controlsOf(database) };
}

function controlsOf(database: Db): Collection<PauseDocument> {
  return database.collection<PauseDocument>(RELAY_COLLECTIONS.controls);
}

function pauseOf(ids: readonly string[]): Pause {
  const topics = ids.filter((id) => id.startsWith(TOPIC)).map((id) => id.slice(TOPIC.length));
  return { all: ids.includes(ALL), topics: topics.sort() };
}
