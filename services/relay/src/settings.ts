import {
  archiveSetting,
  choice,
  commonSettings,
  integer,
  list,
  mongodbSettings,
  rocketmqSettings,
  setting,
  text,
} from '@nightporter/runtime';

const namespaceKind = text({
  charactersMax: 255,
  pattern: /^[^\s.$/\\"]+\.[^\s$]+$/,
  accepts: 'database.collection',
});

const topicKind = text({
  charactersMax: 127,
  pattern: /^[A-Za-z0-9_-]+$/,
  accepts: '1 to 127 letters, digits, _ or -',
});

const DAY_MS = 86_400_000;

const retentionSettings = {
  retention: setting({
    name: 'RETENTION',
    kind: choice(['off', 'delete', 'archive-collections', 'archive-files']),
    default: 'off',
    description:
      'What becomes of old published rows that every group of their topic has passed: they stay, are deleted, or move to collections by time, or to compressed files.',
  }),
  retentionAfterMs: setting({
    name: 'RETENTION_AFTER_MS',
    kind: integer({ min: 60_000, max: 36_500 * DAY_MS }),
    unit: 'ms',
    default: String(7 * DAY_MS),
    description: 'How long a published row stays in the outbox at least, by the database’s clock.',
  }),
  retentionEveryMs: setting({
    name: 'RETENTION_EVERY_MS',
    kind: integer({ min: 1_000, max: 7 * DAY_MS }),
    unit: 'ms',
    default: '600000',
    description: 'How long retention rests between two runs.',
  }),
  retentionBatchRows: setting({
    name: 'RETENTION_BATCH_ROWS',
    kind: integer({ min: 1, max: 10_000 }),
    unit: 'rows',
    default: '1000',
    description: 'Rows that go in one transaction at most.',
  }),
  retentionPauseMs: setting({
    name: 'RETENTION_PAUSE_MS',
    kind: integer({ min: 0, max: 600_000 }),
    unit: 'ms',
    default: '100',
    description: 'How long retention rests after a batch, for the sake of the writers.',
  }),
  retentionBucket: setting({
    name: 'RETENTION_BUCKET',
    kind: choice(['day', 'month']),
    default: 'day',
    description: 'With RETENTION=archive-collections: how much time the rows of one collection span.',
  }),
  archiveFolder: archiveSetting(
    'With RETENTION=archive-files: where the files are. Workers and console read them there too (their ARCHIVE_FOLDER).',
  ),
  archiveMs: setting({
    name: 'ARCHIVE_MS',
    kind: integer({ min: 0, max: 36_500 * DAY_MS }),
    unit: 'ms',
    default: '0',
    description:
      'How long archived rows stay, from their publication on; then their archives are dropped whole. 0 keeps them for ever.',
  }),
};

export const relaySettings = {
  ...commonSettings({ defaultPort: 3001 }),
  ...mongodbSettings({ defaultDatabase: 'relay' }),
  ...rocketmqSettings(),
  namespaces: setting({
    name: 'OUTBOX_NAMESPACES',
    kind: list(namespaceKind, { itemsMax: 100 }),
    default: 'orders.outbox,inventory.outbox',
    description: 'The outboxes to relay, all on the deployment of MONGODB_URI.',
  }),
  topics: setting({
    name: 'TOPICS',
    kind: list(topicKind, { itemsMax: 100 }),
    default: 'orders-events,inventory-events',
    description: 'Topics that the outboxes name. Each is checked at the start: it must exist and keep order.',
  }),
  shards: setting({
    name: 'SHARDS',
    kind: integer({ min: 1, max: 64 }),
    unit: 'shards',
    default: '1',
    description:
      'Parts that the work is divided into and shared out over the relays, each with a change stream of its own. The same for all relays of MONGODB_DB: one with another number waits until no lease of theirs is left.',
  }),
  leaseMs: setting({
    name: 'LEASE_MS',
    kind: integer({ min: 1_000, max: 600_000 }),
    unit: 'ms',
    default: '15000',
    description:
      'How long the lease outlives a relay that was killed; a standby takes over then. SIGTERM hands over at once. More than twice SEND_TIMEOUT_MS and half a second.',
  }),
  sendTimeoutMs: setting({
    name: 'SEND_TIMEOUT_MS',
    kind: integer({ min: 1_000, max: 60_000 }),
    unit: 'ms',
    default: '3000',
    description: 'How long one request to the broker may take before it counts as unanswered, and is sent again.',
  }),
  capture: setting({
    name: 'CAPTURE',
    kind: choice(['stream', 'polling']),
    default: 'stream',
    description:
      'How new rows are captured: by change stream, or by polling where there is none. May differ between relays, and change at a restart.',
  }),
  pollEveryMs: setting({
    name: 'POLL_EVERY_MS',
    kind: integer({ min: 10, max: 600_000 }),
    unit: 'ms',
    default: '1000',
    description: 'With CAPTURE=polling: how long it rests between two readings of the outbox.',
  }),
  claimMs: setting({
    name: 'CLAIM_MS',
    kind: integer({ min: 1_000, max: 86_400_000 }),
    unit: 'ms',
    default: '300000',
    description:
      'How long the claim of a polling relay stands, by the database’s clock, if no take-over of the lease takes it back before. The same for all relays.',
  }),
  sweepEveryMs: setting({
    name: 'SWEEP_EVERY_MS',
    kind: integer({ min: 1_000, max: 3_600_000 }),
    unit: 'ms',
    default: '60000',
    description: 'How often the whole outbox is read for rows that the change stream did not bring.',
  }),
  windowMax: setting({
    name: 'WINDOW_MAX',
    kind: integer({ min: 1, max: 4_096 }),
    unit: 'events',
    default: '256',
    description: 'Events being sent at once, over all aggregates; one of an aggregate at most.',
  }),
  sendsPerSecondMax: setting({
    name: 'SENDS_PER_SECOND_MAX',
    kind: integer({ min: 0, max: 100_000 }),
    unit: 'sends per second',
    default: '0',
    description: 'Limits how fast a backlog reaches the consumers. 0 sets no limit.',
  }),
  ...retentionSettings,
};
