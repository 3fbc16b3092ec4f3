import { TokenBucket, steadyRate, type Clock, type Random } from '@nightporter/protocol';
import { relayOptions, type RelayOptions } from './options.js';
import type {
  Capture,
  CheckpointStore,
  InstanceRegistry,
  LeaseStore,
  OutboxMarker,
  OutboxReader,
  OutboxStats,
  Polling,
  Publisher,
  RelayControls,
  RepairLog,
  ShardMapStore,
} from './ports.js';
import type { RelayObserver } from './relay-events.js';
import { ShardMapGuard } from './shard-map-guard.js';
import { ShardRunner } from './shard-runner.js';
import { ShardShare } from './shard-share.js';
import { ShareWatch } from './share-watch.js';
import type { RelaySnapshot } from './snapshot.js';
import { StatsWatch } from './stats-watch.js';

/** The world of a relay. */
export interface RelayPorts {
  readonly leases: LeaseStore;
  readonly shardMaps: ShardMapStore;
  readonly instances: InstanceRegistry;
  readonly checkpoints: CheckpointStore;
  readonly capture: Capture;
  readonly reader: OutboxReader;
  readonly marker: OutboxMarker;
  readonly publisher: Publisher;
  readonly repairs: RepairLog;
  readonly controls: RelayControls;
  readonly polling: Polling;
  /** Without it the snapshot has no figures of the outboxes. */
  readonly stats?: OutboxStats;
  readonly clock: Clock;
  readonly random: Random;
  readonly observe: RelayObserver;
}

export interface Relay {
  /** Works until `stop()` has drained, then resolves. Rejects only when an invariant of the relay itself is broken. */
  run(): Promise<void>;
  /**
   * Stops sending, waits for sends in flight, their marks and one last checkpoint (at most `drainMs`), releases the
   * lease so that a standby takes over at once (at most two fifths of `drainMs` more, whatever hangs), and resolves when `run()` does. May be called at any time, and again.
   */
  stop(): Promise<void>;
  snapshot(): RelaySnapshot;
}

/** A relay over its ports. Throws NP_CONFIG_INVALID when an option is out of range. */
export function createRelay(ports: RelayPorts, options: { owner: string } & Partial<RelayOptions>): Relay {
  const complete = relayOptions(options);
  const { sendsPerSecondMax } = complete;
  const rate = sendsPerSecondMax === null ? null : new TokenBucket(steadyRate(sendsPerSecondMax));
  const hasMany = complete.shards.length > 1;
  // One shard is everybody's to ask for: there is nothing to share out.
  const share = complete.sharesShards ? new ShardShare(hasMany ? null : 1) : null;
  const shared = share === null ? null : { share, map: new ShardMapGuard({ ports, options: complete }) };
  const runners = complete.shards.map(
    (shard) => new ShardRunner({ ports, options: complete, shard, rate, sharing: shared }),
  );
  const { stats, clock, observe, instances } = ports;
  const sharing =
    share === null || !hasMany
      ? null
      : new ShareWatch({ instances, clock, observe, options: complete, share, runners });
  const { statsEveryMs: everyMs, callMs } = complete;
  const isWanted = (): boolean => runners.some((runner) => runner.isServing);
  const watch = stats === undefined ? null : new StatsWatch({ stats, clock, observe, everyMs, callMs, isWanted });
  const parts = [...runners, ...[watch, sharing].filter((part) => part !== null)];
  let running: Promise<void> | null = null;

  function stopAll(): void {
    for (const part of parts) part.stop();
  }

  /** A shard whose invariants are broken takes the others with it: the process should restart. */
  async function runAll(): Promise<void> {
    const results = await Promise.allSettled(
      parts.map((part) =>
        part.run().catch((error: unknown) => {
          stopAll();
          throw error;
        }),
      ),
    );
    for (const result of results) if (result.status === 'rejected') throw result.reason;
  }

  return {
    run: () => (running ??= runAll()),
    async stop() {
      stopAll();
      if (running !== null) await running.catch(() => undefined);
    },
    snapshot: () => ({
      owner: complete.owner,
      sharing: sharing?.snapshot() ?? null,
      outbox: watch?.latest ?? null,
      shards: runners.map((runner) => runner.snapshot()),
    }),
  };
}
