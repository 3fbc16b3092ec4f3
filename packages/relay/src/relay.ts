import type { Clock, Random } from '@nightporter/protocol';
import { relayOptions, type RelayOptions } from './options.js';
import type {
  Capture,
  CheckpointStore,
  LeaseStore,
  OutboxMarker,
  OutboxReader,
  Publisher,
  RelayObserver,
  RepairLog,
} from './ports.js';
import type { RelaySnapshot } from './snapshot.js';

/** The world of a relay. */
export interface RelayPorts {
  readonly leases: LeaseStore;
  readonly checkpoints: CheckpointStore;
  readonly capture: Capture;
  readonly reader: OutboxReader;
  readonly marker: OutboxMarker;
  readonly publisher: Publisher;
  readonly repairs: RepairLog;
  readonly clock: Clock;
  readonly random: Random;
  readonly observe: RelayObserver;
}

export interface Relay {
  /** Works until `stop()` has drained, then resolves. Rejects only when an invariant of the relay itself is broken. */
  run(): Promise<void>;
  /**
   * Stops sending, waits for sends in flight, their marks and one last checkpoint (at most `drainMs`), releases the
   * lease so that a standby takes over at once, and resolves when `run()` does. May be called at any time, and again.
   */
  stop(): Promise<void>;
  snapshot(): RelaySnapshot;
}

/** A relay over its ports. Throws NP_CONFIG_INVALID when an option is out of range. */
export function createRelay(_ports: RelayPorts, options: { owner: string } & Partial<RelayOptions>): Relay {
  const complete = relayOptions(options);
  return {
    run: () => Promise.resolve(),
    stop: () => Promise.resolve(),
    snapshot: () => ({ owner: complete.owner, shards: [] }),
  };
}
