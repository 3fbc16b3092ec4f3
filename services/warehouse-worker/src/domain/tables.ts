/** The tables of the warehouse: what a row has, and what a column is. Columns are only ever added, at the end and nullable. */

export type Cell = string | bigint | Date | null;
export type Row = Readonly<Record<string, Cell>>;

export interface Column {
  readonly name: string;
  /** `INT64` cells are bigint, `TIMESTAMP` cells are Date (milliseconds, UTC), `STRING` cells are string. */
  readonly type: 'STRING' | 'INT64' | 'TIMESTAMP';
  readonly nullable: boolean;
}

export type TableName = 'events' | 'order_facts';

const column = (name: string, type: Column['type'], nullable = false): Column => ({ name, type, nullable });

export const TABLES: Readonly<Record<TableName, readonly Column[]>> = {
  /** One row for each event of every topic that the worker reads. */
  events: [
    column('event_id', 'STRING'),
    column('event_type', 'STRING'),
    column('event_version', 'INT64'),
    column('source', 'STRING'),
    column('aggregate_type', 'STRING'),
    column('aggregate_id', 'STRING'),
    column('aggregate_version', 'INT64'),
    column('occurred_at', 'TIMESTAMP'),
    column('correlation_id', 'STRING', true),
    column('causation_id', 'STRING', true),
    column('tenant_id', 'STRING', true),
    // Canonical JSON of the event's data, in the newest version of its type that the worker knew.
    column('data', 'STRING'),
  ],
  /** One row for each event of an order, with what is counted and summed as columns. */
  order_facts: [
    column('event_id', 'STRING'),
    column('order_id', 'STRING'),
    column('order_version', 'INT64'),
    // created, paid, surplus, cancelled or completed
    column('fact', 'STRING'),
    column('occurred_at', 'TIMESTAMP'),
    column('customer_id', 'STRING', true),
    column('currency', 'STRING', true),
    // Integer minor units: what the order costs, what was paid, or what is owed back.
    column('amount_minor', 'INT64', true),
    column('pieces', 'INT64', true),
    column('transaction_id', 'STRING', true),
    column('reason', 'STRING', true),
  ],
};

export const TABLE_NAMES = Object.keys(TABLES) as readonly TableName[];
