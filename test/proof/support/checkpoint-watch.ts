import {
  createRelayStores,
  ensureRelayCollections,
  RELAY_COLLECTIONS,
  type CheckpointDocument,
} from '@nightporter/mongo';
import { epoch, resumeToken } from '@nightporter/protocol';
import type { ChangeStreamDocument } from 'mongodb';
import { until } from '../../e2e/programs.js';
import type { RelayWorld } from './relay-world.js';

/** Sees every change of the relay's checkpoint, in the order of the database. */
export interface CheckpointWatch {
  /**
   * Asks for a save in the name of an epoch that is over, as a relay would that has not noticed, once a later one has claimed the
   * checkpoint; true when it was refused.
   */
  isFenced(staleEpoch: number): Promise<boolean>;
  /** Stops watching. May be called again. */
  stop(): Promise<WatchedChanges>;
}

export interface WatchedChanges {
  readonly changes: number;
  /** Those that went back in (epoch, sequence). */
  readonly regressions: readonly string[];
}

type Place = Pick<CheckpointDocument, 'epoch' | 'seq'>;

interface Seen {
  last: Place | null;
  changes: number;
  readonly regressions: string[];
  isStopped: boolean;
}

/** To be called before the first relay starts, so that the first change seen is the first that there is. */
export async function watchCheckpoint({ client, relayDatabase, namespace }: RelayWorld): Promise<CheckpointWatch> {
  await ensureRelayCollections(client, relayDatabase);
  const checkpoints = client.db(relayDatabase).collection<CheckpointDocument>(RELAY_COLLECTIONS.checkpoints);
  const stream = checkpoints.watch([], { maxAwaitTimeMS: 200 });
  await stream.tryNext();
  const seen: Seen = { last: null, changes: 0, regressions: [], isStopped: false };
  const watching = (async () => {
    while (!seen.isStopped) note(seen, await stream.tryNext());
    for (let change = await stream.tryNext(); change !== null; change = await stream.tryNext()) note(seen, change);
  })();
  const stop = async (): Promise<WatchedChanges> => {
    seen.isStopped = true;
    await watching;
    await stream.close();
    return { changes: seen.changes, regressions: seen.regressions };
  };
  let stopped: Promise<WatchedChanges> | undefined;
  return {
    isFenced: async (staleEpoch) => {
      const isClaimed = async () => (await checkpoints.countDocuments({ epoch: { $gt: epoch(staleEpoch) } })) === 1;
      await until(`an epoch after ${staleEpoch} has claimed the checkpoint`, isClaimed);
      const standing = await checkpoints.findOne({});
      if (standing === null) throw new Error('the checkpoint is gone');
      const stores = createRelayStores({ client, database: relayDatabase, namespaces: [namespace] });
      const answer = await stores.checkpoints.save({
        shard: standing._id,
        epoch: epoch(staleEpoch),
        seq: Number.MAX_SAFE_INTEGER,
        token: resumeToken(standing.token ?? 'none'),
      });
      return answer === 'fenced';
    },
    stop: () => (stopped ??= stop()),
  };
}

function note(seen: Seen, change: ChangeStreamDocument<CheckpointDocument> | null): void {
  if (change === null) return;
  const now = placeAfter(change, seen.last);
  seen.changes += 1;
  if (seen.last !== null && isBefore(now, seen.last)) seen.regressions.push(`${told(seen.last)} → ${told(now)}`);
  seen.last = now;
}

/** An update tells only the fields that it changed. */
function placeAfter(change: ChangeStreamDocument<CheckpointDocument>, last: Place | null): Place {
  if (change.operationType === 'insert' || change.operationType === 'replace') return place(change.fullDocument);
  if (change.operationType !== 'update' || last === null) {
    throw new Error(`the checkpoint saw ${change.operationType}, which no relay does to it`);
  }
  return place({ ...last, ...change.updateDescription.updatedFields });
}

function place({ epoch: ofEpoch, seq }: Place): Place {
  return { epoch: ofEpoch, seq };
}

function isBefore(one: Place, other: Place): boolean {
  return one.epoch < other.epoch || (one.epoch === other.epoch && one.seq < other.seq);
}

function told({ epoch: ofEpoch, seq }: Place): string {
  return `(${ofEpoch}, ${seq})`;
}
