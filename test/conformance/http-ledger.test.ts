import { createHttpGroupRegistry, createHttpLedger } from '@nightporter/ledger-http';
import { groupRegistryConformance, producerLedgerConformance } from '@nightporter/testing/conformance';
import { afterEach } from 'vitest';
import { serveLedger, type LedgerAddress } from '../support/ledger-server.js';
import { ledgerFixture, registryFixture } from './ledger-fixtures.js';
import { sharedDatabase } from './mongo-database.js';

const databases = sharedDatabase();
const open: { close(): Promise<unknown> }[] = [];
afterEach(async () => {
  for (const resource of open.splice(0).reverse()) await resource.close();
});

async function serve(database: string): Promise<LedgerAddress> {
  const server = await serveLedger(databases.client(), [database]);
  open.push(server);
  return server;
}

producerLedgerConformance('The ops API', () =>
  ledgerFixture(databases, async (database) => createHttpLedger({ ...(await serve(database)), producer: database })),
);

groupRegistryConformance('The ops API', () =>
  registryFixture(databases, async ({ database, group }) =>
    createHttpGroupRegistry({ ...(await serve(database)), producer: database, group }),
  ),
);
