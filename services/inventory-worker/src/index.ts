export {
  ensureInventoryCollections,
  inventoryCollections,
  type InventoryCollections,
  type MovementDocument,
  type MovementKind,
  type ReservationDocument,
  type ReservationState,
  type StockDocument,
} from './documents.js';
export { createInventoryHandlers } from './handlers.js';
export { INVENTORY_SOURCE, createInventoryWorker } from './service.js';
