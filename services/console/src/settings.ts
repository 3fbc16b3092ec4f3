import {
  archiveSetting,
  commonSettings,
  integer,
  list,
  mongodbSettings,
  optionalText,
  setting,
  text,
} from '@nightporter/runtime';
import { brokerSettings } from './broker.js';
import { groupHomes } from './group-homes.js';

const databaseName = text({
  charactersMax: 38,
  pattern: /^[A-Za-z0-9_-]+$/,
  accepts: '1 to 38 letters, digits, _ or -',
});

const { mongodbUri } = mongodbSettings({ defaultDatabase: '' });

export const consoleSettings = {
  ...commonSettings({ defaultPort: 3010 }),
  mongodbUri,
  producers: setting({
    name: 'PRODUCER_DBS',
    kind: list(databaseName, { itemsMax: 1_000 }),
    default: 'orders,inventory,shipping',
    description: 'Databases of the producers, each with an outbox; also the names of the producers in this API.',
  }),
  relayDatabase: setting({
    name: 'RELAY_DB',
    kind: optionalText({ charactersMax: 38 }),
    default: '',
    description: 'The relay’s database. Looked for where it is not given.',
  }),
  groups: setting({
    name: 'GROUP_DBS',
    kind: groupHomes(),
    default: '',
    description:
      'Where groups keep their data, for those that are not found on the deployment of MONGODB_URI, such as group=database on another one.',
    secret: 'whole',
  }),
  ...brokerSettings,
  brokerRetentionHours: setting({
    name: 'BROKER_RETENTION_HOURS',
    kind: integer({ min: 1, max: 24 * 3_650 }),
    unit: 'hours',
    default: '72',
    description: 'How long the broker keeps messages, as the workers are told: /v1/doctor compares inboxes with it.',
  }),
  liveEveryMs: setting({
    name: 'LIVE_EVERY_MS',
    kind: integer({ min: 250, max: 600_000 }),
    unit: 'ms',
    default: '2000',
    description:
      'How often whoever follows the live figures, or events, is told. The figures are read once for all; events are searched for each.',
  }),
  archiveFolder: archiveSetting('Where the relay’s RETENTION=archive-files keeps its files.'),
  opsToken: setting({
    name: 'OPS_TOKEN',
    kind: optionalText({ charactersMax: 1_024 }),
    default: '',
    description: 'Bearer token for everything here. Needed unless HOST is a loopback address.',
    secret: 'whole',
  }),
  ledgerToken: setting({
    name: 'LEDGER_TOKEN',
    kind: optionalText({ charactersMax: 1_024 }),
    default: '',
    description:
      'Bearer token for the ledgers alone: what a group needs that sweeps through this API. Goes with OPS_TOKEN.',
    secret: 'whole',
  }),
  bodyBytesMax: setting({
    name: 'BODY_BYTES_MAX',
    kind: integer({ min: 65_536, max: 16_777_216 }),
    unit: 'bytes',
    default: '2097152',
    description: 'Largest request body; a larger one is answered 413.',
  }),
  requestsPerMinuteMax: setting({
    name: 'REQUESTS_PER_MINUTE_MAX',
    kind: integer({ min: 1, max: 10_000_000 }),
    unit: 'requests',
    default: '6000',
    description: 'Most requests of one address within a minute; more are answered 429.',
  }),
};
