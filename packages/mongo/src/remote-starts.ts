import type { ProducerLedger } from '@nightporter/consumer';
import type { ClientSession, Collection, MongoClient } from 'mongodb';
import { CONSUMER_COLLECTIONS } from './collections.js';
import { untilNoConflict } from './conflicts.js';
import { durableDatabase } from './database.js';
import type { PositionDocument, StartDocument } from './documents.js';
import { guarded } from './driver-errors.js';
import { headsOf, insertStarts, readHeads, type StartPosition } from './head-copies.js';
import { runTransaction } from './transactions.js';
import { startsOf, type StartKind } from './unavailable-starts.js';

export interface StartPage {
  readonly starts: readonly StartPosition[];
  /** Where the next page begins; null on the last one. */
  readonly next: string | null;
}

/** Where a group starts in the aggregates of a producer, in the order of their keys, for whoever sets its positions. */
export async function readStarts(
  client: MongoClient,
  producerDatabase: string,
  { behind, ledger, limit, starts }: { behind: string; limit: number; starts: StartKind; ledger: ProducerLedger },
): Promise<StartPage> {
  const heads = headsOf(client, producerDatabase);
  const page = await guarded(`reading ${heads.namespace}`, () => readHeads(heads, { behind, limit }));
  const last = page.at(-1);
  return {
    starts: await startsOf(starts, ledger)(page),
    next: page.length < limit || last === undefined ? null : last._id,
  };
}

/** The positions with which a group starts, in its own database. See {@link createStartPositions}. */
export interface StartPositions {
  set(key: string, starts: readonly StartPosition[]): Promise<void>;
  finish(key: string): Promise<void>;
}

/**
 * Sets the positions of a group whose producer is out of reach. Each page commits only until the start named `key` is finished, here, in one document that every
 * page and the end write: a member that is slow must not move the start of an aggregate that the others have begun to read.
 */
export function createStartPositions(options: {
  readonly client: MongoClient;
  /** The group's own. */
  readonly database: string;
  readonly group: string;
}): StartPositions {
  const { client, group } = options;
  const database = durableDatabase(client, options.database);
  const markers = database.collection<StartDocument>(CONSUMER_COLLECTIONS.starts);
  const positions = database.collection<PositionDocument>(CONSUMER_COLLECTIONS.positions);
  const transact = (operation: string, work: (session: ClientSession) => Promise<void>): Promise<void> =>
    untilNoConflict(operation, () =>
      runTransaction(client, operation, ({ session, own }) => own(operation, () => work(session))),
    );
  return {
    set: (key, starts) =>
      transact(`setting ${starts.length} positions of group ${group}`, async (session) => {
        const isOpen = await raise(markers, session, { _id: `${group} ${key}`, group });
        if (isOpen && starts.length > 0) await insertStarts(positions, { group, session, starts });
      }),
    finish: (key) =>
      transact(`ending the start of group ${group}`, async (session) => {
        const marker = { _id: `${group} ${key}`, group };
        await raise(markers, session, marker);
        await markers.updateOne({ _id: marker._id }, { $set: { finished: true } }, { session });
      }),
  };
}

/** False once the start is finished. */
async function raise(
  markers: Collection<StartDocument>,
  session: ClientSession,
  { _id, group }: Pick<StartDocument, '_id' | 'group'>,
): Promise<boolean> {
  const update = { $inc: { pages: 1 }, $setOnInsert: { group, finished: false } };
  const marker = await markers.findOneAndUpdate({ _id }, update, { session, upsert: true, returnDocument: 'after' });
  return marker?.finished === false;
}
