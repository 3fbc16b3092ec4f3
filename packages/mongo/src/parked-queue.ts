import {
  chooseDue,
  isTried,
  type AggregatePlace,
  type ClaimRequest,
  type ParkedEvent,
  type ParkedQueue,
} from '@nightporter/consumer';
import { isNightporterError } from '@nightporter/protocol';
import type { AnyBulkWriteOperation, Filter, MongoClient } from 'mongodb';
import { randomUUID } from 'node:crypto';
import type { DatabaseClock } from './database-clock.js';
import { placeId, positionId, type ParkedDocument } from './documents.js';
import { guarded } from './driver-errors.js';
import type { GroupCollections } from './group-collections.js';
import { MADE_DUE } from './group-save.js';
import { parkedEvent } from './parked-documents.js';
import { runTransaction } from './transactions.js';

export interface ParkedQueueOptions {
  readonly client: MongoClient;
  readonly group: string;
  readonly collections: GroupCollections;
  readonly clock: DatabaseClock;
}

export function createParkedQueue(options: ParkedQueueOptions): ParkedQueue {
  const { group, collections } = options;
  const place = `${collections.parked.namespace} of group ${group}`;
  const unheard = new UnheardClaims(collections);
  return {
    claimDue: (request) => guarded(`claiming what is due in ${place}`, () => claimDue(options, unheard, request)),
    giveBack: (claimed) => guarded(`giving claims back in ${place}`, () => giveBack(options, claimed)),
    behind: (places, limit) => guarded(`looking behind claims in ${place}`, () => behind(options, places, limit)),
    wake: (request) => guarded(`waking in ${place}`, () => wake(options, request)),
  };
}

/** What the choice and the claim need of a row that is due; what it holds is read once it is claimed. */
type Due = Pick<ParkedDocument, '_id' | 'attempts' | 'nextRetryAt' | 'revision' | 'isRunning' | 'isSuspect'>;

const DUE_FIELDS = { attempts: 1, nextRetryAt: 1, revision: 1, isRunning: 1, isSuspect: 1 };

/** The time is asked for first and compared as a constant, which an index can serve and every server does right. */
async function claimDue(
  { group, collections, clock }: ParkedQueueOptions,
  unheard: UnheardClaims,
  request: ClaimRequest,
): Promise<ParkedEvent[]> {
  await unheard.undo();
  const due: Filter<ParkedDocument> = { group, state: 'retry', nextRetryAt: { $lte: await clock.read() } };
  const limit = request.limit + (request.togetherMax === 1 ? 0 : request.togetherMax);
  const dueFirst = (filter: Filter<ParkedDocument>): Promise<Due[]> =>
    collections.parked.find<Due>(filter, { projection: DUE_FIELDS }).sort({ nextRetryAt: 1 }).limit(limit).toArray();
  const found = await dueFirst(due);
  const tried = found.filter(isTried);
  const isCrowded = tried.length > request.repeatedLimit && found.length === limit;
  const untried = isCrowded ? await dueFirst({ ...due, attempts: 0, isSuspect: false }) : [];
  const chosen = chooseDue(isCrowded ? [...tried, ...untried].sort(byTurn) : found, request);
  return chosen.length === 0 ? [] : claim(collections, unheard, { candidates: chosen, claimMs: request.claimMs });
}

function byTurn(left: Due, right: Due): number {
  return (left.nextRetryAt?.getTime() ?? 0) - (right.nextRetryAt?.getTime() ?? 0);
}

/** Those that nobody else was faster to claim, in their order. The claim is one request, repeated by the driver where its answer is lost. */
async function claim(
  { parked }: GroupCollections,
  unheard: UnheardClaims,
  { candidates, claimMs }: { candidates: readonly Due[]; claimMs: number },
): Promise<ParkedEvent[]> {
  const claimedAs = randomUUID();
  const operations = candidates.map(({ _id, attempts, revision }): AnyBulkWriteOperation<ParkedDocument> => {
    const claimed = { attempts: attempts + 1, revision: revision + 1, isRunning: true, claimedAs };
    const update = [{ $set: { ...claimed, nextRetryAt: { $add: ['$$NOW', claimMs] } } }];
    return { updateOne: { filter: { _id, revision }, update } };
  });
  const ours = await unheard.unlessHeard({ claimedAs, candidates }, async () => {
    await parked.bulkWrite(operations, { ordered: false });
    return parked.find({ _id: { $in: candidates.map(({ _id }) => _id) }, claimedAs }).toArray();
  });
  const rows = new Map(ours.map((row) => [row._id, row]));
  return candidates.flatMap(({ _id, isRunning, revision }) => {
    const row = rows.get(_id);
    // Whatever has changed it since the claim has made that void.
    if (row?.revision !== revision + 1) return [];
    return [{ ...parkedEvent(row), isUnanswered: isRunning === true }];
  });
}

interface Claim {
  readonly claimedAs: string;
  readonly candidates: readonly Due[];
}

/** A claim whose answer did not come may be carried out all the same: it is undone before the next one, so that an outage costs no attempt. */
class UnheardClaims {
  readonly #parked: GroupCollections['parked'];
  readonly #claims = new Set<Claim>();

  constructor({ parked }: GroupCollections) {
    this.#parked = parked;
  }

  async unlessHeard<Result>(claimed: Claim, work: () => Promise<Result>): Promise<Result> {
    try {
      return await work();
    } catch (error) {
      this.#claims.add(claimed);
      throw error;
    }
  }

  async undo(): Promise<void> {
    for (const claimed of this.#claims) {
      const { candidates, claimedAs } = claimed;
      const operations = candidates.map(
        ({ _id, attempts, revision, isRunning = false }): AnyBulkWriteOperation<ParkedDocument> => {
          const undone = { attempts, nextRetryAt: '$$NOW', revision: revision + 2, isRunning };
          return { updateOne: { filter: { _id, revision: revision + 1, claimedAs }, update: [{ $set: undone }] } };
        },
      );
      await this.#parked.bulkWrite(operations, { ordered: false });
      this.#claims.delete(claimed);
    }
  }
}

async function giveBack({ group, collections }: ParkedQueueOptions, claimed: readonly ParkedEvent[]): Promise<void> {
  const operations = claimed.map((claim): AnyBulkWriteOperation<ParkedDocument> => {
    const { event, attempts, revision, isSuspect = false } = claim;
    const _id = placeId(group, event.aggregate, event.envelope.aggregateVersion);
    const given = { attempts: attempts - 1, nextRetryAt: '$$NOW', revision: revision + 1, isRunning: false, isSuspect };
    return { updateOne: { filter: { _id, revision, state: 'retry' }, update: [{ $set: given }] } };
  });
  if (operations.length > 0) await collections.parked.bulkWrite(operations, { ordered: false });
}

/** By exact ids, in one round trip. */
async function behind(
  { group, collections }: ParkedQueueOptions,
  places: readonly AggregatePlace[],
  limit: number,
): Promise<readonly (readonly ParkedEvent[])[]> {
  const idsBehind = ({ aggregate, version }: AggregatePlace): string[] =>
    Array.from({ length: limit }, (_, index) => placeId(group, aggregate, version + 1 + index));
  const waiting: Filter<ParkedDocument> = {
    _id: { $in: places.flatMap(idsBehind) },
    state: { $in: ['gap', 'behind'] },
    attempts: 0,
    isSuspect: false,
  };
  const found = new Map((await collections.parked.find(waiting).toArray()).map((row) => [row._id, row]));
  return places.map((place) => {
    const rows = idsBehind(place).map((id) => found.get(id));
    const hole = rows.indexOf(undefined);
    return rows
      .slice(0, hole === -1 ? rows.length : hole)
      .flatMap((row) => (row === undefined ? [] : [parkedEvent(row)]));
  });
}

/** Parked messages that are looked at in one request. */
const LOOK_MAX = 500;

type Waiting = Pick<ParkedDocument, '_id' | 'aggregate' | 'version'>;

async function wake(
  options: ParkedQueueOptions,
  { olderThanMs, limit }: Parameters<ParkedQueue['wake']>[0],
): Promise<number> {
  const { group, collections, clock } = options;
  const parkedBefore = new Date((await clock.read()).getTime() - olderThanMs);
  const waiting: Filter<ParkedDocument> = {
    group,
    state: { $in: ['gap', 'behind'] },
    parkedAt: { $lte: parkedBefore },
  };
  const cursor = collections.parked.find<Waiting>(waiting, {
    projection: { aggregate: 1, version: 1 },
    batchSize: LOOK_MAX,
  });
  let woken = 0;
  try {
    while (woken < limit && (await cursor.hasNext())) {
      for (const next of await nextInLine(options, cursor.readBufferedDocuments())) {
        if (woken < limit && (await wakeOne(options, next))) woken += 1;
      }
    }
  } finally {
    await cursor.close();
  }
  return woken;
}

async function nextInLine({ group, collections }: ParkedQueueOptions, waiting: readonly Waiting[]): Promise<Waiting[]> {
  const ids = [...new Set(waiting.map(({ aggregate }) => positionId(group, aggregate)))];
  const positions = await collections.positions.find({ _id: { $in: ids } }).toArray();
  const versions = new Map(positions.map((position) => [position.aggregate, position.version]));
  return waiting.filter(({ aggregate, version }) => version <= (versions.get(aggregate) ?? 0) + 1);
}

/** Decides anew in a transaction; false when the message is no longer waiting there, or a concurrent verdict won. */
async function wakeOne({ client, group, collections }: ParkedQueueOptions, next: Waiting): Promise<boolean> {
  const { positions, parked } = collections;
  const _id = positionId(group, next.aggregate);
  const operation = `waking ${next._id}`;
  try {
    return await runTransaction(client, operation, ({ session, own }) =>
      own(operation, async () => {
        const position = await positions.findOne({ _id }, { session });
        const { version, startVersion, state } = position ?? { version: 0, startVersion: 0, state: 'open' as const };
        if (next.version > version + 1) return false;
        const waiting: Filter<ParkedDocument> = { _id: next._id, state: { $in: ['gap', 'behind'] } };
        const { modifiedCount } = await parked.updateOne(waiting, [{ $set: MADE_DUE }], { session });
        if (modifiedCount === 0) return false;
        // A position is blocked exactly while the version right behind it is parked; an older one holds nothing up.
        const blocked = next.version === version + 1 ? 'blocked' : state;
        await positions.updateOne(
          { _id },
          { $set: { group, aggregate: next.aggregate, version, startVersion, state: blocked }, $inc: { revision: 1 } },
          { session, upsert: true },
        );
        return true;
      }),
    );
  } catch (error) {
    if (isNightporterError(error, 'NP_TRANSACTION_CONFLICT')) return false;
    throw error;
  }
}
