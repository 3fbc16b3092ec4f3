export { shipmentsOf, type ShipmentDocument } from './documents.js';
export { createShippingWorker } from './service.js';
