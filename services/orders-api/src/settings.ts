import { archiveSetting, commonSettings, integer, mongodbSettings, setting } from '@nightporter/runtime';

export const ordersApiSettings = {
  ...commonSettings({ defaultPort: 3000 }),
  ...mongodbSettings({ defaultDatabase: 'orders' }),
  archiveFolder: archiveSetting(
    'Where the relay’s RETENTION=archive-files keeps its files, so that the events of old orders can be told.',
  ),
  bodyBytesMax: setting({
    name: 'BODY_BYTES_MAX',
    kind: integer({ min: 1_024, max: 1_048_576 }),
    unit: 'bytes',
    default: '262144',
    description: 'Largest request body; a larger one is answered 413.',
  }),
  requestsPerMinuteMax: setting({
    name: 'REQUESTS_PER_MINUTE_MAX',
    kind: integer({ min: 1, max: 10_000_000 }),
    unit: 'requests',
    default: '60000',
    description: 'Most requests of one address within a minute; more are answered 429.',
  }),
  idempotencyHours: setting({
    name: 'IDEMPOTENCY_HOURS',
    kind: integer({ min: 1, max: 8_760 }),
    unit: 'h',
    default: '24',
    description: 'How long a repeated request with the same Idempotency-Key gets the first answer.',
  }),
  commandMs: setting({
    name: 'COMMAND_MS',
    kind: integer({ min: 1_000, max: 60_000 }),
    unit: 'ms',
    default: '8000',
    description: 'How long a command is tried while the database fails or other requests win; then it is answered 503.',
  }),
};
