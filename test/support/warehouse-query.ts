import { DuckDBInstance } from '@duckdb/node-api';
import { readFileSync } from 'node:fs';

const PAGE = new URL('../../docs/warehouse.md', import.meta.url);
const DOCUMENTED_FOLDER = '/var/lib/warehouse/';

/** What one row of a query says: numbers as text, so that none is rounded. */
export type QueryRow = Readonly<Record<string, string | null>>;

export interface DocumentedAnswers {
  /** By currency: orders, completed, cancelled, and minor units. */
  readonly totals: readonly QueryRow[];
  /** By event type: how many, and how many different ones. */
  readonly events: readonly QueryRow[];
}

/** Runs what docs/warehouse.md tells its readers to run, on this folder. */
export async function askAsDocumented(folder: string): Promise<DocumentedAnswers> {
  const blocks = [...readFileSync(PAGE, 'utf8').matchAll(/^```sql\n([\s\S]*?)^```/gm)].map(([, sql = '']) => sql);
  const instance = await DuckDBInstance.create(':memory:');
  const connection = await instance.connect();
  try {
    const answers: (readonly QueryRow[])[] = [];
    for (const sql of blocks) {
      // Resolves to the last statement's rows.
      const reader = await connection.runAndReadAll(sql.replace(DOCUMENTED_FOLDER, `${folder}/`));
      answers.push(reader.getRowObjectsJson() as QueryRow[]);
    }
    const [totals = [], events = []] = answers;
    return { totals, events };
  } finally {
    connection.closeSync();
    instance.closeSync();
  }
}
