import { NightporterError, type Namespace } from '@nightporter/protocol';
import type { Capture, CheckpointStore, LeaseStore, OutboxMarker, OutboxReader, RepairLog } from '@nightporter/relay';
import type { MongoClient } from 'mongodb';

export interface RelayStoresOptions {
  readonly client: MongoClient;
  /** The relay's own database: leases, checkpoints, repairs. */
  readonly database: string;
  /** The outboxes that it serves, `database.collection` each. */
  readonly namespaces: readonly Namespace[];
}

export interface RelayStores {
  readonly leases: LeaseStore;
  readonly checkpoints: CheckpointStore;
  readonly capture: Capture;
  readonly reader: OutboxReader;
  readonly marker: OutboxMarker;
  readonly repairs: RepairLog;
}

/** Every database port of the relay, on MongoDB. */
export function createRelayStores(options: RelayStoresOptions): RelayStores {
  throw new NightporterError('NP_INTERNAL', `createRelayStores(${options.database}) is not there yet`);
}
