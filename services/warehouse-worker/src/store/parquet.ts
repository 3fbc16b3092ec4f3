import { parquetReadObjects } from 'hyparquet';
import { ByteWriter, parquetWriteRows } from 'hyparquet-writer';
import { TABLES, type Column, type Row, type TableName } from '../domain/tables.js';

/** Encoding is synchronous: no more rows than this hold the process's other work up. */
const ROW_GROUP_ROWS = 5_000;

/** A Parquet file with these rows, in memory. Row group by row group, between which the process does its other work. */
export async function encodeParquet(
  table: TableName,
  rows: Iterable<Row> | AsyncIterable<Row>,
): Promise<{ readonly content: Uint8Array; readonly rows: number }> {
  const writer = new ByteWriter();
  const counted = countRows(rows);
  await parquetWriteRows({
    writer,
    rows: counted.rows,
    columns: TABLES[table].map(({ name, type }) => ({ name, type })),
    schema: [{ name: 'root', num_children: TABLES[table].length }, ...TABLES[table].map(schemaElement)],
    rowGroupSize: ROW_GROUP_ROWS,
    createdBy: 'nightporter',
  });
  return { content: new Uint8Array(writer.getBuffer()), rows: counted.count() };
}

/** The rows of a file. A column that the file has not, because it is older than the column, is null. */
export async function decodeParquet(table: TableName, content: Uint8Array): Promise<readonly Row[]> {
  // A view of its own: a Buffer may be a part of a larger piece of memory.
  const file = content.slice().buffer;
  const found = (await parquetReadObjects({ file })) as readonly Partial<Row>[];
  return found.map((row) => Object.fromEntries(TABLES[table].map(({ name }) => [name, row[name] ?? null])));
}

function schemaElement({ name, type, nullable }: Column) {
  const repetition = { name, repetition_type: nullable ? 'OPTIONAL' : 'REQUIRED' } as const;
  switch (type) {
    case 'STRING':
      return { ...repetition, type: 'BYTE_ARRAY', converted_type: 'UTF8' } as const;
    case 'INT64':
      return { ...repetition, type: 'INT64' } as const;
    case 'TIMESTAMP':
      return { ...repetition, type: 'INT64', converted_type: 'TIMESTAMP_MILLIS' } as const;
  }
}

function countRows(rows: Iterable<Row> | AsyncIterable<Row>): {
  readonly rows: AsyncIterable<Record<string, unknown>>;
  count(): number;
} {
  let count = 0;
  async function* counting(): AsyncGenerator<Record<string, unknown>> {
    for await (const row of rows) {
      if (count > 0 && count % ROW_GROUP_ROWS === 0) await new Promise((resolve) => setImmediate(resolve));
      count += 1;
      yield row;
    }
  }
  return { rows: counting(), count: () => count };
}
