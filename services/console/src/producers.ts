import type { GroupRegistry, ProducerLedger } from '@nightporter/consumer';
import {
  createGroupRegistry,
  createProducerLedger,
  endStart,
  readStarts,
  registerRemoteGroup,
  type ArchiveFiles,
  type RemoteRegistration,
  type StartPage,
  type UnfinishedStart,
} from '@nightporter/mongo';
import type { MongoClient } from 'mongodb';

/** One producer, as groups see it that may not read its database. */
export interface Producer {
  readonly ledger: ProducerLedger;
  registryOf(group: string): GroupRegistry;
  register(registration: Omit<RemoteRegistration, 'ledger'>): ReturnType<typeof registerRemoteGroup>;
  readStarts(page: { behind: string; limit: number; starts: UnfinishedStart['starts'] }): Promise<StartPage>;
  endStart(start: { group: string; sinceMs: number }): Promise<void>;
}

/** By the name of the database. */
export type Producers = ReadonlyMap<string, Producer>;

export function openProducers(
  client: MongoClient,
  { databases, files }: { databases: readonly string[]; files: ArchiveFiles | null },
): Producers {
  const archive = files === null ? {} : { files };
  return new Map(
    databases.map((database) => {
      const ledger = createProducerLedger({ client, database, ...archive });
      const producer: Producer = {
        ledger,
        registryOf: (group) => createGroupRegistry({ client, database, group }),
        register: (registration) => registerRemoteGroup(client, database, { ...registration, ledger }),
        readStarts: (page) => readStarts(client, database, { ...page, ledger }),
        endStart: (start) => endStart(client, database, start),
      };
      return [database, producer];
    }),
  );
}
