export { EXIT, type Io } from './cli.js';
export { runCli } from './run.js';
export type { Difference, EventFacts, GroupNames, OrderFacts } from './reconcile/facts.js';
export { reconcile, settledBefore, type Reconciliation } from './reconcile/reconcile.js';
export { readWarehouse, type WarehouseReading } from './reconcile/warehouse.js';
