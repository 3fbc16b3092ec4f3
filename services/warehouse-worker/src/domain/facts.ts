import {
  canonicalJson,
  type EventEnvelope,
  type JsonValue,
  type OrderCancelled,
  type OrderCreated,
  type OrderPaid,
  type SurplusPaymentReceived,
} from '@nightporter/contracts';
import type { Row, TableName } from './tables.js';

/** An event as it waits to be landed. The data is text already, so that no store between here and the file can change it. */
export interface StagedEvent {
  readonly eventId: string;
  readonly eventType: string;
  readonly eventVersion: number;
  readonly source: string;
  readonly aggregateType: string;
  readonly aggregateId: string;
  readonly aggregateVersion: number;
  readonly occurredAt: string;
  readonly correlationId: string | null;
  readonly causationId: string | null;
  readonly tenantId: string | null;
  readonly data: string;
}

export function stagedEvent(event: EventEnvelope<unknown>): StagedEvent {
  return {
    eventId: event.eventId,
    eventType: event.eventType,
    eventVersion: event.eventVersion,
    source: event.source,
    aggregateType: event.aggregateType,
    aggregateId: event.aggregateId,
    aggregateVersion: event.aggregateVersion,
    occurredAt: event.occurredAt,
    correlationId: event.correlationId ?? null,
    causationId: event.causationId ?? null,
    tenantId: event.tenantId ?? null,
    // Data of the catalogue's schemas is plain JSON: nothing else can be emitted.
    data: canonicalJson(event.data as JsonValue),
  };
}

/** Rows of one table and one day: what goes into one file. */
export interface Partition {
  readonly table: TableName;
  /** The UTC day at which the events occurred, `2026-11-30`. */
  readonly day: string;
  readonly rows: readonly Row[];
}

/** The rows of these events, by table and day. Pure: the same events are the same rows, whoever lands them and when. */
export function partitionsOf(events: readonly StagedEvent[]): readonly Partition[] {
  const partitions = new Map<string, Partition & { readonly rows: Row[] }>();
  const add = (table: TableName, day: string, row: Row): void => {
    const key = `${table} ${day}`;
    const partition = partitions.get(key);
    if (partition === undefined) partitions.set(key, { table, day, rows: [row] });
    else partition.rows.push(row);
  };
  for (const event of events) {
    const day = event.occurredAt.slice(0, 10);
    add('events', day, eventRow(event));
    const fact = orderFact(event);
    if (fact !== null) add('order_facts', day, fact);
  }
  return [...partitions.values()];
}

function eventRow(event: StagedEvent): Row {
  return {
    event_id: event.eventId,
    event_type: event.eventType,
    event_version: BigInt(event.eventVersion),
    source: event.source,
    aggregate_type: event.aggregateType,
    aggregate_id: event.aggregateId,
    aggregate_version: BigInt(event.aggregateVersion),
    occurred_at: new Date(event.occurredAt),
    correlation_id: event.correlationId,
    causation_id: event.causationId,
    tenant_id: event.tenantId,
    data: event.data,
  };
}

/** Null for an event that is none of an order's. */
export function orderFact(event: StagedEvent): Row | null {
  const row = (fact: string, own: Partial<Row>): Row => ({
    event_id: event.eventId,
    order_id: event.aggregateId,
    order_version: BigInt(event.aggregateVersion),
    fact,
    occurred_at: new Date(event.occurredAt),
    customer_id: null,
    currency: null,
    amount_minor: null,
    pieces: null,
    transaction_id: null,
    reason: null,
    ...(own as Row),
  });
  const data: unknown = JSON.parse(event.data);
  switch (event.eventType) {
    case 'OrderCreated': {
      const { customerId, currency, totalMinor, lines } = data as OrderCreated;
      const pieces = lines.reduce((sum, { quantity }) => sum + BigInt(quantity), 0n);
      return row('created', { customer_id: customerId, currency, amount_minor: BigInt(totalMinor), pieces });
    }
    case 'OrderPaid': {
      const { amountMinor, currency, transactionId } = data as OrderPaid;
      return row('paid', { currency, amount_minor: BigInt(amountMinor), transaction_id: transactionId });
    }
    case 'SurplusPaymentReceived': {
      const { amountMinor, cause, currency, transactionId } = data as SurplusPaymentReceived;
      const amount = { currency, amount_minor: BigInt(amountMinor), transaction_id: transactionId };
      return row('surplus', { ...amount, reason: cause });
    }
    case 'OrderCancelled':
      return row('cancelled', { reason: (data as OrderCancelled).reason });
    case 'OrderCompleted':
      return row('completed', {});
    default:
      return null;
  }
}
