export {
  CONSUMER_COLLECTIONS,
  OUTBOX_COLLECTIONS,
  RELAY_COLLECTIONS,
  ensureConsumerCollections,
  ensureOutbox,
  ensureOutboxCollections,
  ensureRelayCollections,
} from './collections.js';
export { durableDatabase } from './database.js';
export { connectMongo, type ConnectOptions } from './connect.js';
export type {
  CheckpointDocument,
  GroupActionDocument,
  GroupDocument,
  InboxDocument,
  LeaseDocument,
  OperatorActionDocument,
  OperatorNote,
  ParkedDocument,
  PauseDocument,
  PositionDocument,
  RegistryDocument,
  RepairDocument,
  SetAsideDocument,
  StartedDocument,
  StoredEvent,
} from './documents.js';
export { guarded } from './driver-errors.js';
export { engineOf, type Engine } from './engine.js';
export { createGroupRegistry } from './group-registry.js';
export { createGroupStores, type GroupStores, type GroupStoresOptions } from './group-stores.js';
export { registerGroup, type GroupRegistration } from './groups.js';
export type { Operator } from './operator-actions.js';
export { createOutboxActions } from './outbox-actions.js';
export { pauseRelay, resumeRelay, type PauseOutcome, type PauseRequest } from './relay-controls.js';
export { createProducerLedger } from './producer-ledger.js';
export { parkedEvent } from './parked-documents.js';
export { createRelayStores, type RelayStores, type RelayStoresOptions } from './relay-stores.js';
