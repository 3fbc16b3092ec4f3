import {
  OUTBOX_COLLECTIONS,
  createProducerLedger,
  durableDatabase,
  guarded,
  type GroupDocument,
} from '@nightporter/mongo';
import type { Deployment, GroupPlace } from '../questions/deployment.js';
import type { Replay, ReplayProducer } from './contract.js';
import { createReplay } from './replay.js';

/**
 * The replay of a group of a deployment, from all producers that know it; of one that is new, from those that have `topics`. Rejects with
 * NP_STORE_UNAVAILABLE.
 */
export async function replayOfGroup(
  { producers }: Pick<Deployment, 'producers'>,
  { client, database, group }: GroupPlace,
  topics: readonly string[] = [],
): Promise<Replay> {
  const read: ReplayProducer[] = [];
  for (const { client: of, database: producer, files } of producers) {
    const groups = durableDatabase(of, producer).collection<GroupDocument>(OUTBOX_COLLECTIONS.groups);
    const entry = await guarded(`reading ${groups.namespace}`, () => groups.findOne({ _id: group }));
    const wanted = entry?.topics ?? topics;
    const ledger = createProducerLedger({ client: of, database: producer, ...(files === undefined ? {} : { files }) });
    if (wanted.length > 0) read.push({ database: producer, topics: wanted, ledger });
  }
  return createReplay({ client, database, group, producers: read });
}
