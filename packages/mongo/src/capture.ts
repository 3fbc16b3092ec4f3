import { NightporterError, type Namespace, type ResumeToken, type Slot } from '@nightporter/protocol';
import type { Capture } from '@nightporter/relay';
import type { MongoClient } from 'mongodb';
import { capturePipeline } from './capture-pipeline.js';
import { MongoCaptureStream, type Unindexed } from './capture-stream.js';
import { createDatabaseClock } from './database-clock.js';
import { ensureOutbox } from './collections.js';
import type { IndexDoubts } from './index-doubts.js';

export interface CaptureOptions {
  readonly client: MongoClient;
  readonly namespaces: readonly Namespace[];
  readonly doubts: IndexDoubts;
  /** Told of what went wrong beside the stream. */
  readonly onWarning: (warning: NightporterError) => void;
}

/** One cluster-level change stream over all outboxes. */
export function createCapture({ client, doubts, namespaces, onWarning }: CaptureOptions): Capture {
  const clock = createDatabaseClock(client);
  const unindexed: Unindexed = new Map();

  async function open({
    after,
    slots,
  }: {
    after: ResumeToken | null;
    slots: readonly Slot[];
  }): Promise<MongoCaptureStream> {
    if (namespaces.length === 0) throw new NightporterError('NP_CONFIG_INVALID', 'No outbox is configured to capture.');
    const stream = new MongoCaptureStream({
      client,
      namespaces,
      pipeline: capturePipeline(namespaces, slots),
      after,
      clock,
      unindexed,
      recreate: async (namespace) => {
        // First: from the moment that there is an index again, it may lack rows.
        await doubts.raise(namespace);
        await ensureOutbox(client, namespace);
        // Again: what was open while they were created may be open from now on for as long as a transaction may be.
        await doubts.raise(namespace);
      },
      onWarning,
    });
    await stream.open();
    return stream;
  }
  return { open };
}
