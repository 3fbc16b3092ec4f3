export { partitionsOf, stagedEvent } from './domain/facts.js';
export { TABLE_NAMES, type Row, type TableName } from './domain/tables.js';
export { createLander } from './lander/lander.js';
export { LANDER_METRICS } from './metrics-table.js';
export { LandingSession, type SessionPorts } from './lander/session.js';
export { createWarehouseWorker, type WarehouseParts } from './service.js';
export {
  ensureWarehouseCollections,
  warehouseCollections,
  type FileDocument,
  type StagedDocument,
  type WarehouseCollections,
} from './store/documents.js';
export { createWarehouseFolder, type WarehouseFolder } from './store/folder.js';
export { MANIFEST, readFileOf, readManifest, readTable, type Manifest, type ManifestFile } from './store/manifest.js';
export { createWarehouseStore, type WarehouseStore } from './store/warehouse-store.js';
