import { envelopeOf, ordersCatalogue, type OutboxDocument } from '@nightporter/contracts';
import {
  partitionsOf,
  readTable,
  stagedEvent,
  TABLE_NAMES,
  warehouseCollections,
  type Row,
  type TableName,
} from '@nightporter/warehouse-worker';
import type { MongoClient } from 'mongodb';
import { createHash } from 'node:crypto';
import type { LandedFacts } from './facts.js';
import { groupBy } from './read-facts.js';

/** What the warehouse says about events. */
export interface WarehouseReading {
  /** By order, each of these events beside its rows in every table. */
  landedOf(rows: readonly OutboxDocument[]): Promise<ReadonlyMap<string, readonly LandedFacts[]>>;
}

/** Event id → digests of its rows. */
type Digests = ReadonlyMap<string, readonly string[]>;

/**
 * Reads the files that the manifest names, all of them, since the ids of events are spread over them: of each row it keeps id and digest,
 * some 150 bytes. Rejects with NP_WAREHOUSE_FAILED where a file is missing or is not what was written.
 */
export async function readWarehouse(
  client: MongoClient,
  { database, folder }: { database: string; folder: string },
): Promise<WarehouseReading> {
  const { staged } = warehouseCollections(client.db(database));
  const tables = new Map<TableName, Digests>();
  for (const table of TABLE_NAMES) tables.set(table, await readDigests(folder, table));
  return {
    async landedOf(rows) {
      const waiting = await staged.find({ _id: { $in: rows.map(({ _id }) => _id) } }).toArray();
      const stagedIds = new Set(waiting.map(({ _id }) => _id));
      const facts = rows.flatMap((row) =>
        TABLE_NAMES.map((table) => ({
          orderId: row.aggregateId,
          eventId: row._id,
          table,
          wanted: wantedDigest(row, table),
          found: tables.get(table)?.get(row._id) ?? [],
          isStaged: stagedIds.has(row._id),
        })),
      );
      return groupBy(facts, ({ orderId }) => orderId);
    },
  };
}

async function readDigests(folder: string, table: TableName): Promise<Digests> {
  const digests = new Map<string, string[]>();
  for await (const rows of readTable(folder, table)) {
    for (const row of rows) {
      const id = String(row['event_id']);
      const known = digests.get(id);
      if (known === undefined) digests.set(id, [digestOfRow(row)]);
      else known.push(digestOfRow(row));
    }
  }
  return digests;
}

/** Of the row that the event should have in the table, read as the worker reads it; null where it should have none. */
function wantedDigest(row: OutboxDocument, table: TableName): string | null {
  const verdict = ordersCatalogue.read(envelopeOf(row, 'original'));
  const staged = stagedEvent(verdict.kind === 'event' ? verdict.envelope : envelopeOf(row, 'original'));
  const [wanted] = partitionsOf([staged]).find((partition) => partition.table === table)?.rows ?? [];
  return wanted === undefined ? null : digestOfRow(wanted);
}

function digestOfRow(row: Row): string {
  const cells = Object.entries(row).sort(([one], [other]) => (one < other ? -1 : 1));
  const text = JSON.stringify(cells, (_name, cell: unknown) => (typeof cell === 'bigint' ? `${cell}n` : cell));
  return createHash('sha256').update(text).digest('base64').slice(0, 22);
}
