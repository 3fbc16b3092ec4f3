import { createGroupRegistry, createProducerLedger } from '@nightporter/mongo';
import { groupRegistryConformance, producerLedgerConformance } from '@nightporter/testing/conformance';
import { ledgerFixture, registryFixture } from './ledger-fixtures.js';
import { sharedDatabase } from './mongo-database.js';

const databases = sharedDatabase();

producerLedgerConformance('MongoDB', () =>
  ledgerFixture(databases, (database) => createProducerLedger({ client: databases.client(), database })),
);

groupRegistryConformance('MongoDB', () =>
  registryFixture(databases, (place) => createGroupRegistry({ client: databases.client(), ...place })),
);
