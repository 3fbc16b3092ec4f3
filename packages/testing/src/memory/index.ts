export { MemoryTopic, type HandedOut, type Receipt, type StoredMessage } from './broker.js';
export { MemoryBroker, memoryPublisher, memorySubscriber, type LandingListener } from './broker-ports.js';
export type { AsideDocument, GroupCommit, GroupDocument, InboxDocument, ParkedDocument } from './group-documents.js';
export { MemoryGroup } from './group.js';
export { MemorySession, memoryEmitter, memoryGroupStores, type MemoryGroupStores } from './group-stores.js';
export { MemoryTransaction } from './group-transaction.js';
export {
  MemoryCheckpoints,
  MemoryControls,
  MemoryInstances,
  MemoryLeases,
  MemoryRepairs,
  MemoryShardMap,
  type CheckpointDocument,
  type CheckpointSave,
  type LeaseDocument,
} from './leases.js';
export { MemoryGroupRegistry, memoryProducer, type RegisteredGroup } from './group-registry.js';
export { createManualClock, type ManualClock } from './manual-clock.js';
export { directNetwork, toDatabase, type CallOptions, type LongPoll, type Network, type NoAnswer } from './network.js';
export { MemoryOplog, type OplogOptions } from './oplog.js';
export { MemoryOutbox, type CommittedEvent, type DatabaseClock, type RowListener } from './outbox.js';
export { memoryRelayStores, type RelayDatabase, type RelayStores } from './relay-stores.js';
export type { StoredPublication, StoredRow, Viewer } from './stored-row.js';
export { MemoryStarted } from './started.js';
export { createMemoryWorld, createRelayDatabase, type MemoryWorld, type MemoryWorldOptions } from './world.js';
