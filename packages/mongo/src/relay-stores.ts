import type { NightporterError, Namespace } from '@nightporter/protocol';
import type {
  Capture,
  CheckpointStore,
  InstanceRegistry,
  LeaseStore,
  OutboxMarker,
  OutboxReader,
  OutboxStats,
  Polling,
  RelayControls,
  RepairLog,
  ShardMapStore,
} from '@nightporter/relay';
import type { MongoClient } from 'mongodb';
import { createCapture } from './capture.js';
import { createCheckpointStore } from './checkpoints.js';
import { namespaceParts } from './collections.js';
import { durableDatabase } from './database.js';
import { createDatabaseClock } from './database-clock.js';
import { createIndexDoubts, type IndexDoubtsOptions } from './index-doubts.js';
import { createInstanceRegistry } from './instances.js';
import { createLeaseStore } from './leases.js';
import { createOutboxMarker } from './outbox-marker.js';
import { createOutboxReader } from './outbox-reader.js';
import { createOutboxStats } from './outbox-stats.js';
import { createPolling } from './polling.js';
import { createRelayControls } from './relay-controls.js';
import { createRepairLog } from './repairs.js';
import { createShardMapStore } from './shard-map.js';

export interface RelayStoresOptions {
  readonly client: MongoClient;
  /** The relay's own database: leases, the map of shards, instances, checkpoints, repairs, controls. */
  readonly database: string;
  /** The outboxes that it serves, `database.collection` each. */
  readonly namespaces: readonly Namespace[];
  /** The `owner` of the relay: its own claims of rows (PROCESSING) are shown to it as PENDING. Default: nobody. */
  readonly owner?: string;
  /** How long another relay's claim of a row stands before the row counts as PENDING again. Default 300,000 ms. */
  readonly claimMs?: number;
  /** How long indexes that were created again are doubted at least, see index-doubts.ts. Default 90,000 ms, compared every 10,000 ms. */
  readonly indexDoubts?: Pick<IndexDoubtsOptions, 'settleMs' | 'compareEveryMs'>;
  /** Rows of each outbox and status that the figures count at most. Default 10,000. */
  readonly countedMax?: number;
  /** Told of what went wrong beside the ports' calls, such as indexes that cannot be created again. Default: ignored. */
  readonly onWarning?: (warning: NightporterError) => void;
}

export interface RelayStores {
  readonly leases: LeaseStore;
  readonly shardMaps: ShardMapStore;
  readonly instances: InstanceRegistry;
  readonly checkpoints: CheckpointStore;
  readonly capture: Capture;
  readonly reader: OutboxReader;
  readonly marker: OutboxMarker;
  readonly repairs: RepairLog;
  readonly controls: RelayControls;
  readonly polling: Polling;
  readonly stats: OutboxStats;
}

/** Every database port of the relay, on MongoDB. Throws NP_CONFIG_INVALID for a namespace that is none. */
export function createRelayStores(options: RelayStoresOptions): RelayStores {
  const { client, namespaces, owner = '', claimMs = 300_000, onWarning = () => undefined } = options;
  namespaces.forEach(namespaceParts);
  const database = durableDatabase(client, options.database);
  const doubts = createIndexDoubts({
    ...options.indexDoubts,
    client,
    clock: createDatabaseClock(client),
    database,
    namespaces,
  });
  return {
    leases: createLeaseStore(database),
    shardMaps: createShardMapStore(database),
    instances: createInstanceRegistry(database),
    checkpoints: createCheckpointStore(database),
    capture: createCapture({ client, doubts, namespaces, onWarning }),
    reader: createOutboxReader({ client, namespaces, claimMs, doubts, owner }),
    marker: createOutboxMarker(client),
    repairs: createRepairLog(database),
    controls: createRelayControls(database),
    polling: createPolling(client, { doubts, namespaces }),
    stats: createOutboxStats(client, namespaces, options.countedMax),
  };
}
