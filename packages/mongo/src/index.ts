export { createAges, type Ages } from './ages.js';
export { bucketNamed, bucketOf, type ArchiveBucket, type BucketSize } from './archive-buckets.js';
export { archivePlace, catalogueOf, createFiledRows, versionOf, type UnreadableFile } from './archive-catalogue.js';
export { checksumOf, decodeArchive, encodeArchive } from './archive-encoding.js';
export {
  DATA_SUFFIX,
  MANIFEST_SUFFIX,
  type ArchiveFileDocument,
  type ArchiveFiles,
  type ArchiveManifest,
  type ArchivedFile,
} from './archive-files.js';
export { createArchiveFolder } from './archive-folder.js';
export {
  CONSUMER_COLLECTIONS,
  OUTBOX_COLLECTIONS,
  RELAY_COLLECTIONS,
  ensureArchiveBucket,
  ensureArchiveCatalogue,
  ensureConsumerCollections,
  ensureOutbox,
  ensureOutboxCollections,
  ensureRelayCollections,
  missingIndexes,
  namespaceParts,
} from './collections.js';
export { createDatabaseClock, type DatabaseClock } from './database-clock.js';
export { durableDatabase } from './database.js';
export { closeMongo, connectMongo, type ConnectOptions } from './connect.js';
export type {
  CheckpointDocument,
  GroupActionDocument,
  GroupDocument,
  InboxDocument,
  InstanceDocument,
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
export { archivesOf, type Archive } from './archives.js';
export { asideId, placeId, positionId } from './documents.js';
export { createGroupRegistry } from './group-registry.js';
export {
  WAITING_STATES,
  createGroupStats,
  type GroupFigures,
  type GroupStats,
  type WaitingState,
} from './group-stats.js';
export { createGroupStores, type GroupStores, type GroupStoresOptions } from './group-stores.js';
export {
  REGISTRY,
  endStart,
  registerGroup,
  registerRemoteGroup,
  type GroupRegistration,
  type RemoteRegistration,
  type UnfinishedStart,
} from './groups.js';
export { createLeaseStore } from './leases.js';
export { assertOperator, recordAction, runAction, type Operator } from './operator-actions.js';
export { createOutboxActions } from './outbox-actions.js';
export { pauseRelay, resumeRelay, type PauseOutcome, type PauseRequest } from './relay-controls.js';
export { createProducerLedger } from './producer-ledger.js';
export { createLedgerRows, type LedgerRow, type LedgerRows } from './ledger-rows.js';
export { parkedEvent } from './parked-documents.js';
export { storedEnvelope } from './stored-envelope.js';
export { copyReplayStarts, finishReplayGroup, registerReplayGroup, type ReplayGroup } from './replay-registration.js';
export { createStartPositions, readStarts, type StartPage, type StartPositions } from './remote-starts.js';
export { createRelayStores, type RelayStores, type RelayStoresOptions } from './relay-stores.js';
export { runTransaction, type Attempt } from './transactions.js';
export { transactionLifetimeLimitMs } from './transaction-lifetime.js';
