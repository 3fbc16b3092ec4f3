import type { ConsumerOptions, ConsumerPorts, DuplicateFilter, GroupStore } from '@nightporter/consumer';
import type { Catalogue, EventDefinition } from '@nightporter/contracts';
import { NightporterError } from '@nightporter/protocol';
import type { ConfigOf, Logger, ServiceDefinition, SettingTable } from '@nightporter/runtime';
import type { ClientSession, Db, MongoClient } from 'mongodb';
import type { Companion, CompanionLimits } from './companion.js';
import type { HandlersOf } from './handlers.js';
import {
  assertDistinctNames,
  assertDistinctTopics,
  assertUsableDefaults,
  subscriptionSettings,
  workerSettings,
  type Subscription,
  type WorkerDefaults,
  type WorkerSettings,
} from './settings.js';
import { startWorker } from './start-worker.js';

/** What a worker may build its handlers from. */
export interface WorkerResources<Own extends SettingTable> {
  readonly client: MongoClient;
  /** The worker's own database. */
  readonly database: Db;
  readonly config: ConfigOf<Own>;
  readonly logger: Logger;
}

/** The engine's limits that a definition may set; the others come from the settings, or are the engine's own. */
export type WorkerTuning = Partial<
  Pick<
    ConsumerOptions,
    'retryScheduleMs' | 'retryDelays' | 'retryConcurrency' | 'isTransient' | 'handlerMs' | 'claimMs' | 'transactionMs'
  >
>;

export type WorkerFilter = DuplicateFilter & { close?(): Promise<void> };

/** A worker, all of it: what it reads, what it does with it, and what its settings are called by default. */
export interface ConsumerDefinition<
  Events extends readonly EventDefinition[],
  Own extends SettingTable = SettingTable,
> extends WorkerDefaults {
  readonly name: string;
  readonly description: string;
  /** Default port of its health server. */
  readonly port: number;
  /** Default name of its own database. */
  readonly database: string;
  /** Default name of its consumer group. */
  readonly group: string;
  /** Names it as the producer of what it emits; never to be changed. */
  readonly source: string;
  readonly catalogue: Catalogue<Events>;
  readonly subscriptions: readonly [Subscription, ...Subscription[]];
  /** Settings of its own. */
  readonly settings?: Own;
  readonly tuning?: WorkerTuning;
  /** Creates collections and indexes of its own; runs at every start, in several processes at once. */
  readonly prepare?: (resources: WorkerResources<Own>) => Promise<void>;
  /**
   * Spares known duplicates a transaction; the inbox decides in any case. `createMemoryFilter()`, or `createRedisFilter()` of
   * `@nightporter/redis-filter`. It is closed with the worker, where it can be.
   */
  readonly duplicateFilter?: (resources: WorkerResources<Own>) => WorkerFilter;
  /** Work beside the consumer, for what must not happen in a transaction. */
  readonly companion?: (resources: WorkerResources<Own>, limits: CompanionLimits) => Companion;
  readonly handlers: HandlersOf<Events> | ((resources: WorkerResources<Own>) => HandlersOf<Events>);
}

export interface WorkerParts {
  /** Stands between engine and database; tests put faults here. */
  readonly storeOf?: (store: GroupStore<ClientSession>) => GroupStore<ClientSession>;
  /** Stands between engine and everything else that it uses, `storeOf` included. */
  readonly portsOf?: (ports: ConsumerPorts<ClientSession>) => ConsumerPorts<ClientSession>;
}

/**
 * A worker as a service, for `runService`: settings, health server, collections, preflight of topics and group, registration of the group
 * with its producers, the consumer with inbox and outbox, and an orderly stop. Refuses with NP_CONFIG_INVALID a definition whose
 * settings collide, or whose defaults (group, database, topics) do not fit; at the start, one with handlers that could never run.
 */
export function defineConsumer<
  const Events extends readonly EventDefinition[],
  const Own extends SettingTable = SettingTable,
>(definition: ConsumerDefinition<Events, Own>, parts: WorkerParts = {}): ServiceDefinition<WorkerSettings & Own> {
  const { name, description, settings, subscriptions } = definition;
  // `table` also has the settings of the subscriptions, whose keys no type knows; resolveSubscriptions reads them.
  const table = {
    ...workerSettings(definition),
    ...subscriptionSettings(subscriptions),
    ...settings,
  } as WorkerSettings & Own;
  const ownKeys = Object.keys(settings ?? {}).filter((key) => key in workerSettings(definition));
  if (ownKeys.length > 0) {
    throw new NightporterError(
      'NP_CONFIG_INVALID',
      `${name} has settings ${ownKeys.join(', ')} of its own, as every worker has.`,
    );
  }
  assertDistinctTopics(name, subscriptions);
  assertDistinctNames(name, table);
  assertUsableDefaults(name, table);
  return {
    name,
    description,
    config: table,
    start: (context) => startWorker(definition, context, parts),
  };
}
