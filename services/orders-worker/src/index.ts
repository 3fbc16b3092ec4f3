export { createOrdersHandlers } from './handlers.js';
export { createOrdersWorker } from './service.js';
