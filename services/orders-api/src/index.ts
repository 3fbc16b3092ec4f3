export type { Order, OrderCommand, OrderEvent, OrderLine, OrderStatus } from './domain/order.js';
export { buildApp, type AppOptions } from './http/app.js';
export type { CommandOutcome, CommandRequest, CommandResult, ExpectedVersion, Orders } from './orders.js';
export { ORDERS_SOURCE, ordersApi } from './service.js';
export { ensureOrdersCollections, type IdempotencyDocument, type OrderDocument } from './store/documents.js';
export { createMongoOrders, type MongoOrdersOptions } from './store/mongo-orders.js';
