import { NightporterError } from '@nightporter/protocol';
import {
  archiveSetting,
  choice,
  commonSettings,
  flag,
  integer,
  mongodbSettings,
  optionalText,
  rocketmqSettings,
  setting,
  text,
  type Setting,
  type SettingTable,
} from '@nightporter/runtime';

/** One topic that a worker reads, and the producer in whose database its events are kept for it. */
export interface Subscription {
  /** The producing service; its database is called the same unless the setting `<PRODUCER>_DB` says otherwise. */
  readonly producer: string;
  readonly topic: string;
  /** The setting that names another topic. Default `<PRODUCER>_TOPIC`; needed where two topics have one producer. */
  readonly topicSetting?: string;
}

/** A subscription as configured. */
export interface ResolvedSubscription {
  readonly topic: string;
  readonly producerDatabase: string;
  /** The ops API through which the producer's ledger is read; null where the worker reads its database. */
  readonly ledgerServer: { readonly url: string; readonly token: string | null } | null;
}

export interface WorkerDefaults {
  readonly port: number;
  readonly database: string;
  readonly group: string;
}

const name = text({ charactersMax: 120, pattern: /^[%A-Za-z0-9_-]+$/, accepts: '1 to 120 letters, digits, %, _ or -' });
/** RocketMQ takes 120 characters, of which a generation needs some, and keeps the prefix for groups of its own. */
const groupName = text({
  charactersMax: 100,
  pattern: /^(?!CID_RMQ_SYS_)[%A-Za-z0-9_-]+(@[1-9][0-9]{0,3})?$/,
  accepts:
    '1 to 100 letters, digits, %, _ or -, with @ and a number for a generation; not beginning with CID_RMQ_SYS_, as the broker’s own do',
});
const databaseName = text({
  charactersMax: 38,
  pattern: /^[A-Za-z0-9_-]+$/,
  accepts: '1 to 38 letters, digits, _ or -',
});

/** The settings that every worker has, but for those of its subscriptions. */
export function workerSettings({ port, database, group }: WorkerDefaults) {
  return {
    ...commonSettings({ defaultPort: port }),
    ...mongodbSettings({ defaultDatabase: database }),
    ...rocketmqSettings(),
    group: setting({
      name: 'GROUP',
      kind: groupName,
      default: group,
      description:
        'Consumer group. Workers of one group share the work. NAME@2 is its second generation: a group of its own, with inbox and positions of its own, called NAME-generation-2 at the broker.',
    }),
    receiveLoops: setting({
      name: 'RECEIVE_LOOPS',
      kind: integer({ min: 1, max: 32 }),
      default: '4',
      description: 'Batches in hand at once.',
    }),
    receiveMax: setting({
      name: 'RECEIVE_MAX',
      kind: integer({ min: 1, max: 32 }),
      unit: 'events',
      default: '32',
      description: 'Most events in one batch, whose messages are acknowledged with one request.',
    }),
    commitMax: setting({
      name: 'COMMIT_MAX',
      kind: integer({ min: 1, max: 32 }),
      unit: 'events',
      default: '32',
      description:
        'Most events of a batch that one transaction settles; 1 turns group commit off, at a third of the speed.',
    }),
    invisibleMs: setting({
      name: 'INVISIBLE_MS',
      kind: integer({ min: 1_000, max: 600_000 }),
      unit: 'ms',
      default: '30000',
      description:
        'How long the broker keeps the events of a worker that was killed from the others; a living worker extends it.',
    }),
    attemptsMax: setting({
      name: 'ATTEMPTS_MAX',
      kind: integer({ min: 1, max: 1_000 }),
      default: '5',
      description: 'Attempts before an event becomes a dead letter, which holds its own aggregate only.',
    }),
    inboxRetentionDays: setting({
      name: 'INBOX_RETENTION_DAYS',
      kind: integer({ min: 1, max: 3_650 }),
      unit: 'days',
      default: '90',
      description:
        'How long it is kept what became of each event. Twice BROKER_RETENTION_HOURS or more, which is checked at the start: what the broker may deliver again must not be forgotten.',
    }),
    brokerRetentionHours: setting({
      name: 'BROKER_RETENTION_HOURS',
      kind: integer({ min: 1, max: 24 * 3_650 }),
      unit: 'hours',
      default: '72',
      description: 'How long the broker keeps messages: its fileReservedTime.',
    }),
    copiesDeadLetters: setting({
      name: 'DEAD_LETTER_COPIES',
      kind: flag(),
      default: 'false',
      description:
        'Whether each dead letter is copied to the topic that is called like its own with -dlt behind it, which must exist then. It stays in the worker’s database in any case.',
    }),
    from: setting({
      name: 'GROUP_FROM',
      kind: choice(['beginning', 'now']),
      default: 'beginning',
      description:
        'Where a group starts that is new: with everything that its producers still have, or with what comes from now on. No meaning once it is registered.',
    }),
    unavailable: setting({
      name: 'GROUP_UNAVAILABLE',
      kind: choice(['refuse', 'accept']),
      default: 'refuse',
      description:
        'What a new group does that starts from the beginning where retention has deleted events: refuse to start, or start with what is left and put that down in its positions.',
    }),
    archiveFolder: archiveSetting(
      'Where the relay’s RETENTION=archive-files keeps its files. A group that starts from the beginning needs it to read what lies there.',
    ),
    ledgerEveryMs: setting({
      name: 'LEDGER_SWEEP_EVERY_MS',
      kind: integer({ min: 100, max: 3_600_000 }),
      unit: 'ms',
      default: '10000',
      description:
        'How often what the producers have published is compared with what the group has, so that nothing that the broker loses stays lost.',
    }),
    ledgerLagMs: setting({
      name: 'LEDGER_LAG_MS',
      kind: integer({ min: 100, max: 3_600_000 }),
      unit: 'ms',
      default: '10000',
      description: 'Age of a published event at which the group no longer waits for the broker to bring it.',
    }),
    catchUpMax: setting({
      name: 'CATCH_UP_MAX',
      kind: integer({ min: 1, max: 512 }),
      unit: 'events',
      default: '64',
      description:
        'Most events of its history that one transaction settles while the group catches up from the ledger; 1: each runs in a transaction of its own, at a fraction of the speed.',
    }),
    sloLatencyMs: setting({
      name: 'SLO_LATENCY_MS',
      kind: integer({ min: 1, max: 3_600_000 }),
      unit: 'ms',
      default: '5000',
      description:
        'From commit to settled, on the database’s clock: what takes longer counts against the service level of the group. Changes figures and nothing else.',
    }),
    gapWaitMs: setting({
      name: 'GAP_WAIT_MS',
      kind: integer({ min: 100, max: 3_600_000 }),
      unit: 'ms',
      default: '5000',
      description: 'How long an event waits for the ones before it until these are taken from the ledger.',
    }),
  };
}

export type WorkerSettings = ReturnType<typeof workerSettings>;

/** The settings of the subscriptions: a database for each producer, and a topic for each. */
export function subscriptionSettings(
  subscriptions: readonly Subscription[],
): Readonly<Record<string, Setting<string> | Setting<string | null>>> {
  const table: Record<string, Setting<string> | Setting<string | null>> = {};
  for (const { producer } of subscriptions) {
    table[databaseKey(producer)] = setting({
      name: `${upperCase(producer)}_DB`,
      kind: databaseName,
      default: producer,
      description: `The database of ${producer}, in which the group is registered so that its events are kept for it.`,
    });
    table[urlKey(producer)] = setting({
      name: `${upperCase(producer)}_LEDGER_URL`,
      kind: optionalText({ charactersMax: 2_048 }),
      default: '',
      description: `The ops API of ${producer}, where this worker may not use its database: the group is registered there, and its events are compared there.`,
    });
    table[tokenKey(producer)] = setting({
      name: `${upperCase(producer)}_LEDGER_TOKEN`,
      kind: optionalText({ charactersMax: 1_024 }),
      default: '',
      description: `The token that the ops API of ${producer} takes for ledgers.`,
      secret: 'whole',
    });
  }
  for (const { producer, topic, topicSetting } of subscriptions) {
    table[topicKey(topic)] = setting({
      name: topicSetting ?? `${upperCase(producer)}_TOPIC`,
      kind: name,
      default: topic,
      description: `Topic with the events of ${producer}. It is checked at the start, and the group with it.`,
    });
  }
  return table;
}

/** What the configuration makes of the subscriptions. */
export function resolveSubscriptions(
  subscriptions: readonly Subscription[],
  config: Readonly<Record<string, unknown>>,
): readonly ResolvedSubscription[] {
  return subscriptions.map(({ producer, topic }) => ({
    topic: String(config[topicKey(topic)]),
    producerDatabase: String(config[databaseKey(producer)]),
    ledgerServer: ledgerServerOf(config, producer),
  }));
}

function ledgerServerOf(
  config: Readonly<Record<string, unknown>>,
  producer: string,
): ResolvedSubscription['ledgerServer'] {
  const [url, token] = [config[urlKey(producer)], config[tokenKey(producer)]];
  return typeof url === 'string' ? { url, token: typeof token === 'string' ? token : null } : null;
}

/** Two settings of one name would be one variable with two meanings. */
export function assertDistinctNames(worker: string, table: SettingTable): void {
  const names = Object.values(table).map((one) => one.name);
  const repeated = names.find((one, index) => names.indexOf(one) !== index);
  if (repeated === undefined) return;
  throw new NightporterError(
    'NP_CONFIG_INVALID',
    `Two settings of ${worker} are called ${repeated}; give a subscription another topicSetting, or your own setting another name.`,
  );
}

/** What a topic has is received, and looked for in the ledger, once. */
export function assertDistinctTopics(worker: string, subscriptions: readonly Subscription[]): void {
  const topics = subscriptions.map(({ topic }) => topic);
  const repeated = topics.find((one, index) => topics.indexOf(one) !== index);
  if (repeated === undefined) return;
  throw new NightporterError(
    'NP_CONFIG_INVALID',
    `Two subscriptions of ${worker} have the topic ${repeated}; a topic has one producer, and is subscribed to once.`,
  );
}

/** What is wrong in a definition shows when it is made, and not only where no variable hides it. */
export function assertUsableDefaults(worker: string, table: SettingTable): void {
  for (const { name: variable, kind, default: value } of Object.values(table)) {
    if (value === undefined || kind.schema.safeParse(value).success) continue;
    throw new NightporterError(
      'NP_CONFIG_INVALID',
      `The definition of ${worker} has ${JSON.stringify(value)} as the default of ${variable}; accepted: ${kind.accepts}.`,
    );
  }
}

function databaseKey(producer: string): string {
  return `database of ${producer}`;
}

function urlKey(producer: string): string {
  return `ledger URL of ${producer}`;
}

function tokenKey(producer: string): string {
  return `ledger token of ${producer}`;
}

function topicKey(topic: string): string {
  return `topic ${topic}`;
}

/** `orders-api` → `ORDERS_API` */
function upperCase(producer: string): string {
  return producer.toUpperCase().replace(/[^A-Z0-9]+/g, '_');
}
