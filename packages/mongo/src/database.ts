import { ReadConcern, WriteConcern, type Db, type MongoClient } from 'mongodb';

const WRITE_CONCERN_MS = 10_000;

/**
 * A database with write concern majority and journal, read concern majority, on the primary, whatever the client was made with. What was
 * acknowledged is not rolled back, and what could be rolled back is not read.
 */
export function durableDatabase(client: MongoClient, name: string): Db {
  return client.db(name, {
    readConcern: new ReadConcern('majority'),
    writeConcern: new WriteConcern('majority', WRITE_CONCERN_MS, true),
    readPreference: 'primary',
  });
}
