import { openArchive } from '@nightporter/archive';
import { createRetention, type Destination, type RetentionOptions, type RetentionResult } from '@nightporter/ledger';
import { NightporterError, Wakeup, isNightporterError, namespace, sleep, type Clock } from '@nightporter/protocol';
import type { RelaySnapshot } from '@nightporter/relay';
import type { ConfigOf, Logger } from '@nightporter/runtime';
import type { relaySettings } from './settings.js';

export interface RetentionWorker {
  readonly ended: Promise<void>;
  /** Lets the batch in hand end, and resolves then. */
  stop(): Promise<void>;
}

interface World {
  readonly client: RetentionOptions['client'];
  readonly clock: Clock;
  readonly config: ConfigOf<typeof relaySettings>;
  readonly logger: Logger;
  readonly snapshot: () => RelaySnapshot;
}

/** How often a relay that stands by looks whether it is its turn. */
const STANDBY_MS = 1_000;

/**
 * Runs retention now and then, outbox by outbox, while this relay holds the lease of its first shard: so that one works and not all of them.
 * Two that work at once for a moment do no harm: their batches conflict, and each row leaves once.
 */
export function startRetention(world: World, destination: Destination | null): RetentionWorker | null {
  if (destination === null) return null;
  const stopping = new Wakeup();
  const abort = new AbortController();
  const ended = keepRunning(world, destination, { abort, stopping });
  return {
    ended,
    async stop() {
      abort.abort();
      stopping.ringForGood();
      await ended;
    },
  };
}

/** Whether a relay works for its first shard. */
export function holdsFirstShard({ shards: [first] }: RelaySnapshot): boolean {
  return first !== undefined && ['sweeping', 'following', 'polling'].includes(first.state);
}

/** Throws NP_CONFIG_INVALID where files have no place. */
export async function destinationOf({
  archiveFolder,
  retention,
  retentionBucket,
}: World['config']): Promise<Destination | null> {
  switch (retention) {
    case 'off':
      return null;
    case 'delete':
      return { kind: 'delete' };
    case 'archive-collections':
      return { kind: 'collections', bucket: retentionBucket };
    case 'archive-files':
      if (archiveFolder !== null) return { kind: 'files', files: await openArchive(archiveFolder) };
      throw new NightporterError(
        'NP_CONFIG_INVALID',
        'ARCHIVE_FOLDER is empty; RETENTION=archive-files needs a folder, or a place in S3.',
      );
  }
}

interface Stopping {
  readonly abort: AbortController;
  readonly stopping: Wakeup;
}

async function keepRunning(world: World, destination: Destination, { abort, stopping }: Stopping): Promise<void> {
  const { clock, config, snapshot } = world;
  while (!stopping.rungForGood) {
    const isOurs = holdsFirstShard(snapshot());
    if (isOurs) for (const outbox of config.namespaces) await runOnce(world, { abort, destination, outbox });
    await sleep(clock, isOurs ? config.retentionEveryMs : STANDBY_MS, stopping);
  }
}

interface Run {
  readonly abort: AbortController;
  readonly destination: Destination;
  readonly outbox: string;
}

async function runOnce(world: World, { abort, destination, outbox }: Run): Promise<void> {
  const { client, config, logger, snapshot } = world;
  const lost = new AbortController();
  try {
    const retention = createRetention({
      client,
      namespace: namespace(outbox),
      destination,
      afterMs: config.retentionAfterMs,
      archiveMs: config.archiveMs === 0 ? null : config.archiveMs,
      batchRowsMax: config.retentionBatchRows,
      pauseMs: config.retentionPauseMs,
    });
    const result = await retention.run({
      signal: AbortSignal.any([abort.signal, lost.signal]),
      progress: () => {
        if (!holdsFirstShard(snapshot())) lost.abort();
      },
    });
    tell(logger, outbox, result);
  } catch (error) {
    // Whatever it is, events flow on: the next run begins where this one ended.
    const isOutage = isNightporterError(error, 'NP_STORE_UNAVAILABLE');
    logger[isOutage ? 'warn' : 'error']({ outbox, err: error }, 'retention failed; it is tried again');
  }
}

function tell(logger: Logger, outbox: string, result: RetentionResult): void {
  const { batches, bytes, dropped, held, heldArchives, kind, rows } = result;
  if (rows > 0 || dropped.length > 0) logger.info({ outbox, kind, rows, bytes, batches, dropped }, 'retention');
  if (held.length + heldArchives.length > 0) {
    logger.warn({ outbox, held, heldArchives }, 'retention waits for groups: what is old enough stays');
  }
}
