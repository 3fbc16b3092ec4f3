import type { GroupProducer, Subscriber } from '@nightporter/consumer';
import type { Publisher } from '@nightporter/relay';
import { MemoryBroker, memoryPublisher, memorySubscriber } from './broker-ports.js';
import { MemoryGroup } from './group.js';
import { MemoryGroupRegistry, memoryProducer } from './group-registry.js';
import { memoryEmitter, memoryGroupStores, type MemoryGroupStores } from './group-stores.js';
import {
  MemoryCheckpoints,
  MemoryControls,
  MemoryInstances,
  MemoryLeases,
  MemoryRepairs,
  MemoryShardMap,
} from './leases.js';
import { createManualClock, type ManualClock } from './manual-clock.js';
import { directNetwork, type Network } from './network.js';
import { MemoryOutbox } from './outbox.js';
import type { Viewer } from './stored-row.js';
import { memoryRelayStores, type RelayDatabase, type RelayStores } from './relay-stores.js';
import { namespace } from '@nightporter/protocol';

/** A database cluster and a broker in memory, and the ports that reach them at once and without a fault. */
export interface MemoryWorld {
  /** Moves the engines' timers, the database's clock and the broker's alike. */
  readonly clock: ManualClock;
  readonly network: Network;
  readonly database: RelayDatabase;
  readonly broker: MemoryBroker;
  /** The documents of a group, made at the first call. */
  readonly group: (name: string) => MemoryGroup;
  readonly relayStores: (viewer?: Viewer) => RelayStores;
  readonly publisher: () => Publisher;
  readonly subscriber: (request: { group: string; topic: string }) => Subscriber;
  readonly groupStores: (name: string) => MemoryGroupStores;
  /** The ledger as a group that is registered sees it. */
  readonly producer: (group: string) => GroupProducer;
  /** Whatever a handler emits lands in the outbox `own.outbox` under topic `own-events`. */
  readonly emitter: ReturnType<typeof memoryEmitter>;
}

export interface MemoryWorldOptions {
  readonly queues?: number;
  readonly random?: () => number;
}

export function createMemoryWorld(options: MemoryWorldOptions = {}): MemoryWorld {
  const clock = createManualClock();
  const network = directNetwork(clock);
  const now = (): number => clock.now();
  const database = createRelayDatabase(now);
  const broker = new MemoryBroker({ clock: now, random: options.random ?? (() => 0.5), queues: options.queues ?? 4 });
  const groups = new Map<string, MemoryGroup>();

  function group(name: string): MemoryGroup {
    const known = groups.get(name) ?? new MemoryGroup(now);
    known.onCommitted = (commit) => {
      if (commit.emitted.length > 0) database.outbox.commit(commit.emitted);
    };
    groups.set(name, known);
    return known;
  }

  return {
    clock,
    network,
    database,
    broker,
    group,
    relayStores: (viewer) => memoryRelayStores(database, network, viewer),
    publisher: () => memoryPublisher(broker, network),
    subscriber: (request) => memorySubscriber(broker, network, request),
    groupStores: (name) => memoryGroupStores(group(name), network),
    producer: (name) => memoryProducer(database, name, network),
    emitter: memoryEmitter({ namespace: namespace('own.outbox'), source: 'own', topic: 'own-events' }),
  };
}

export function createRelayDatabase(clock: () => number): RelayDatabase {
  const leases = new MemoryLeases(clock);
  return {
    outbox: new MemoryOutbox(clock),
    leases,
    shardMaps: new MemoryShardMap(leases, clock),
    instances: new MemoryInstances(clock),
    checkpoints: new MemoryCheckpoints(),
    repairs: new MemoryRepairs(),
    controls: new MemoryControls(),
    groups: new MemoryGroupRegistry(clock),
  };
}
