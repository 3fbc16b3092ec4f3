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
import type {
  MemoryCheckpoints,
  MemoryControls,
  MemoryInstances,
  MemoryLeases,
  MemoryRepairs,
  MemoryShardMap,
} from './leases.js';
import type { MemoryGroupRegistry } from './group-registry.js';
import { toDatabase, type Network } from './network.js';
import type { MemoryOplog } from './oplog.js';
import type { MemoryOutbox } from './outbox.js';
import type { Viewer } from './stored-row.js';

/** What one database cluster holds for relays. */
export interface RelayDatabase {
  readonly outbox: MemoryOutbox;
  readonly leases: MemoryLeases;
  readonly shardMaps: MemoryShardMap;
  readonly instances: MemoryInstances;
  readonly checkpoints: MemoryCheckpoints;
  readonly repairs: MemoryRepairs;
  readonly controls: MemoryControls;
  /** Groups that are registered with the producers. */
  readonly groups: MemoryGroupRegistry;
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

/** How long `CaptureStream.read` waits for rows. */
const STREAM_WAIT_MS = 1_000;

/** The relay's ports on an in-memory database that is reached through `network`. */
export function memoryRelayStores(database: RelayDatabase, network: Network, viewer?: Viewer): RelayStores {
  const { outbox, leases, shardMaps, instances, checkpoints, repairs, controls } = database;
  const call = <Result>(name: string, operation: () => Result): Promise<Result> =>
    network.call(name, operation, toDatabase(name));
  return {
    leases: {
      acquire: (request) => call('leases.acquire', () => leases.acquire(request)),
      release: (request) =>
        call('leases.release', () => {
          leases.release(request);
        }),
    },
    shardMaps: {
      agree: (request) => call('shardMaps.agree', () => shardMaps.agree(request)),
      check: (request) => call('shardMaps.check', () => shardMaps.check(request)),
    },
    instances: {
      announce: (request) => call('instances.announce', () => instances.announce(request)),
      leave: (request) =>
        call('instances.leave', () => {
          instances.leave(request);
        }),
    },
    checkpoints: {
      claim: (request) => call('checkpoints.claim', () => checkpoints.claim(request)),
      save: (request) => call('checkpoints.save', () => checkpoints.save(request)),
    },
    capture: memoryCapture(outbox.oplog, network),
    reader: {
      readUnsettled: (request) => call('reader.readUnsettled', () => outbox.readUnsettled(request, viewer)),
      readLanes: (lanes, limit) => call('reader.readLanes', () => outbox.readLanes(lanes, limit, viewer)),
      lookUp: (references) => call('reader.lookUp', () => outbox.lookUp(references, viewer)),
    },
    marker: { mark: (marks) => call('marker.mark', () => outbox.mark(marks)) },
    repairs: {
      record: (repair) =>
        call('repairs.record', () => {
          repairs.record(repair);
        }),
    },
    polling: {
      busySlots: (slots) => call('polling.busySlots', () => outbox.busySlots(slots)),
      takeBack: (request) => call('polling.takeBack', () => outbox.takeBack(request)),
    },
    stats: { read: () => call('stats.read', () => outbox.figures()) },
    controls: { readPause: () => call('controls.readPause', () => controls.read()) },
  };
}

function memoryCapture(oplog: MemoryOplog, network: Network): Capture {
  return {
    async open(request) {
      let place = await network.call('capture.open', () => oplog.open(request), toDatabase('capture.open'));
      return {
        async read() {
          const { batch, next } = await network.call('capture.read', () => oplog.read(place), {
            ...toDatabase('capture.read'),
            longPoll: {
              forMs: STREAM_WAIT_MS,
              isEmpty: (answer) => answer.batch.rows.length === 0 && !answer.batch.disturbed,
              changes: oplog.changes,
            },
          });
          place = next;
          return batch;
        },
        close: () => network.call('capture.close', () => undefined, toDatabase('capture.close')),
      };
    },
  };
}
