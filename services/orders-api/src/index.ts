export type { Order, OrderCommand, OrderEvent, OrderLine, OrderStatus, Rejection } from './domain/order.js';
export { buildApp, type AppOptions } from './http/app.js';
export type { OrderEvents, OrderEventsPage, OrderEventView } from './order-events.js';
export type { CommandOutcome, CommandRequest, CommandResult, ExpectedVersion, Orders } from './orders.js';
export { ORDERS_SOURCE, ordersApi } from './service.js';
export { applyCommand, type CommandOnOrder, type CommandScope, type OrderPlace } from './store/apply-command.js';
export {
  ensureOrdersCollections,
  ordersCollections,
  type IdempotencyDocument,
  type OrderDocument,
  type OrdersCollections,
  type PaymentDocument,
  type RefundDocument,
} from './store/documents.js';
export { createLedgerOrderEvents, type LedgerOrderEventsOptions } from './store/ledger-order-events.js';
export { createMongoOrders, type MongoOrdersOptions } from './store/mongo-orders.js';
