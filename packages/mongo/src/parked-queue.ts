import {
  chooseDue,
  isTried,
  type AggregatePlace,
  type ClaimRequest,
  type ParkedEvent,
  type ParkedQueue,
} from '@nightporter/consumer';
import type { AnyBulkWriteOperation, Filter, MongoClient } from 'mongodb';
import { randomUUID } from 'node:crypto';
import type { DatabaseClock } from './database-clock.js';
import { placeId, type ParkedDocument } from './documents.js';
import { guarded } from './driver-errors.js';
import type { GroupCollections } from './group-collections.js';
import { parkedEvent } from './parked-documents.js';
import { WaitingAggregates } from './waiting-aggregates.js';
import { wake } from './waking.js';

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
  const aggregates = new WaitingAggregates(options);
  return {
    claimDue: (request) => guarded(`claiming what is due in ${place}`, () => claimDue(options, unheard, request)),
    giveBack: (claimed) => guarded(`giving claims back in ${place}`, () => giveBack(options, claimed)),
    behind: (places, limit) => guarded(`looking behind claims in ${place}`, () => behind(options, places, limit)),
    wake: (request) => guarded(`waking in ${place}`, () => wake(options, aggregates, request)),
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
