/** What is wrong with a deployment, and what mends it: pure, so that every check is a table in the test. */

export interface Finding {
  /** `error`: events stand still, or could be lost. `warning`: they will, or somebody has to act. `note`: good to know. */
  readonly severity: 'error' | 'warning' | 'note';
  readonly check: Check;
  readonly text: string;
  /** The command, or the deed, that mends it; null where nothing has to be mended. */
  readonly mend: string | null;
}

export type Check =
  | 'engine'
  | 'replica-set'
  | 'indexes'
  | 'clock'
  | 'history'
  | 'checkpoint'
  | 'relay'
  | 'outbox'
  | 'group'
  | 'inbox-retention'
  | 'topic';

export interface DeploymentFacts {
  readonly engine: { readonly engine: 'MongoDB' | 'SecantusDB'; readonly version: string };
  readonly replicaSet: {
    readonly name: string | null;
    readonly members: number;
    /** Null: nobody may ask, or the server does not say. */
    readonly unhealthy: readonly string[] | null;
  };
  readonly missingIndexes: readonly { readonly namespace: string; readonly index: string; readonly role: string }[];
  /** This computer's clock minus each database's, by the place of the database. */
  readonly clockSkews: readonly { readonly of: string; readonly skewMs: number }[];
  /** How far back the oplog reaches; null: it cannot be read. */
  readonly historyMs: number | null;
  readonly relay: {
    readonly database: string;
    readonly holders: readonly string[];
    readonly checkpoints: readonly { readonly shard: string; readonly ageMs: number }[];
    readonly pauses: readonly { readonly scope: string; readonly by: string; readonly reason: string }[];
  } | null;
  readonly outboxes: readonly {
    readonly producer: string;
    readonly dead: number;
    readonly oldestPendingMs: number | null;
  }[];
  readonly groups: readonly GroupFacts[];
  /** How long the broker keeps a message, and so may deliver it again. */
  readonly brokerRetentionMs: number;
}

interface GroupFacts {
  readonly group: string;
  readonly producer: string;
  readonly database: string | null;
  readonly sweeper: string | null;
  readonly lagMs: number;
  readonly dead: number;
  readonly setAside: number;
  /** How long its newest inbox record is kept; null: it has none. */
  readonly inboxRetentionMs: number | null;
}

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const MONGODB_MAJOR_MIN = 6;
const SKEW_MAX_MS = 2_000;
const HISTORY_MIN_MS = DAY_MS;
const PENDING_MAX_MS = 60_000;
const LAG_MAX_MS = 5 * 60_000;

export function judgeDeployment(facts: DeploymentFacts): readonly Finding[] {
  return [
    ...judgeServer(facts),
    ...facts.missingIndexes.map(({ index, namespace, role }) =>
      error('indexes', `${namespace} has no index ${index}.`, `Start ${role} again: it creates what is missing.`),
    ),
    ...judgeClocks(facts),
    ...judgeRelay(facts),
    ...facts.outboxes.flatMap((outbox) => judgeOutbox(outbox)),
    ...facts.groups.flatMap((group) => [...judgeGroup(group), ...judgeInbox(group, facts.brokerRetentionMs)]),
  ];
}

function judgeServer({ engine: { engine, version }, historyMs, replicaSet }: DeploymentFacts): readonly Finding[] {
  const { members, name, unhealthy } = replicaSet;
  const isOld = engine === 'MongoDB' && Number.parseInt(version, 10) < MONGODB_MAJOR_MIN;
  return [
    ...(engine === 'SecantusDB'
      ? [note('engine', `SecantusDB ${version} is a stand-in for MongoDB, for tests and demos.`)]
      : []),
    ...(isOld
      ? [error('engine', `MongoDB ${version} is too old.`, `Upgrade it to ${MONGODB_MAJOR_MIN}.0 or newer.`)]
      : []),
    ...(name === null
      ? [
          error(
            'replica-set',
            'The server is in no replica set: it has neither transactions nor change streams.',
            'mongod --replSet rs0, then rs.initiate() in mongosh',
          ),
        ]
      : []),
    ...(name !== null && members === 1
      ? [
          note(
            'replica-set',
            `Replica set ${name} has one member: what is lost with it is lost. Three survive the loss of one.`,
          ),
        ]
      : []),
    ...(name !== null && unhealthy === null
      ? [
          note(
            'replica-set',
            'Whether all members are healthy is not known: replSetGetStatus was refused. The role clusterMonitor allows it.',
          ),
        ]
      : []),
    ...(unhealthy ?? []).map((member) =>
      warning(
        'replica-set',
        `Member ${member} is not healthy: with another one lost there is no majority.`,
        `rs.status() in mongosh tells why; mend or replace ${member}`,
      ),
    ),
    ...(historyMs !== null && historyMs < HISTORY_MIN_MS
      ? [
          note(
            'history',
            `The oplog reaches back ${Math.round(historyMs / 60_000)} min. A relay that is down for longer starts with a sweep. It grows to its size: db.adminCommand({ replSetResizeOplog: 1, minRetentionHours: 24 }) holds a day.`,
          ),
        ]
      : []),
  ];
}

function judgeClocks({ clockSkews }: DeploymentFacts): readonly Finding[] {
  return clockSkews
    .filter(({ skewMs }) => Math.abs(skewMs) > SKEW_MAX_MS)
    .map(({ of, skewMs }) =>
      warning(
        'clock',
        `The clock of ${of} is ${Math.abs(Math.round(skewMs))} ms ${skewMs > 0 ? 'behind' : 'ahead of'} this computer's. Deadlines are the database's, so nothing breaks; ages and latencies that are told are wrong.`,
        'Have both keep the time: chronyc tracking, timedatectl set-ntp true',
      ),
    );
}

function judgeRelay({ historyMs, relay }: DeploymentFacts): readonly Finding[] {
  if (relay === null)
    return [
      warning(
        'relay',
        'No database has leases of a relay: none has ever run, or it is elsewhere.',
        'Start the relay, or name its database: --relay-db <name>',
      ),
    ];
  const { checkpoints, holders, pauses } = relay;
  return [
    ...(holders.length === 0
      ? [
          error(
            'relay',
            `No relay holds a lease in ${relay.database}: nothing is published.`,
            'Start a relay: node services/relay/dist/main.js, or its container',
          ),
        ]
      : []),
    ...pauses.map(({ by, reason, scope }) => {
      const topic = scope === 'all' ? '' : ` --topic ${scope.replace(/^topic:/, '')}`;
      return warning(
        'relay',
        `${scope === 'all' ? 'Everything' : scope} is paused by ${by} (${reason}).`,
        `nightporter relay resume${topic} --by <you> --reason <why>`,
      );
    }),
    ...checkpoints
      .filter(({ ageMs }) => historyMs !== null && ageMs > historyMs / 2 && ageMs > 10 * 60_000)
      .map(({ ageMs, shard }) =>
        warning(
          'checkpoint',
          `The checkpoint of shard ${shard} is ${Math.round(ageMs / 60_000)} min old, and the oplog is about to leave it behind.`,
          'nightporter relay show; the relay’s readiness says why it does not move',
        ),
      ),
  ];
}

function judgeOutbox({ dead, oldestPendingMs, producer }: DeploymentFacts['outboxes'][number]): readonly Finding[] {
  return [
    ...(dead > 0
      ? [
          warning(
            'outbox',
            `${dead} events of ${producer} are DEAD: what follows in their aggregates waits.`,
            'nightporter outbox list; then outbox retry or outbox skip',
          ),
        ]
      : []),
    ...(oldestPendingMs !== null && oldestPendingMs > PENDING_MAX_MS
      ? [
          error(
            'outbox',
            `An event of ${producer} has waited for the relay for ${Math.round(oldestPendingMs / 1_000)} s.`,
            'nightporter outbox list --status PENDING; its timeline says why',
          ),
        ]
      : []),
  ];
}

function judgeGroup({ database, dead, group, lagMs, producer, setAside, sweeper }: GroupFacts): readonly Finding[] {
  return [
    ...(database === null
      ? [
          warning(
            'group',
            `Group ${group} of ${producer} is registered, and no database has anything of it.`,
            `--group-db ${group}=<database>, or, if it is no more: nightporter groups remove ${group} --by <you> --reason <why>`,
          ),
        ]
      : []),
    ...(sweeper === null && lagMs > LAG_MAX_MS
      ? [
          error(
            'group',
            `No worker of group ${group} runs: it is ${Math.round(lagMs / 60_000)} min behind ${producer}, and retention waits for it.`,
            `Start its worker, or, if it is no more: nightporter groups remove ${group} --by <you> --reason <why>`,
          ),
        ]
      : []),
    ...(sweeper !== null && lagMs > LAG_MAX_MS
      ? [
          warning(
            'group',
            `Group ${group} is ${Math.round(lagMs / 60_000)} min behind ${producer}.`,
            'Look at its worker’s log and readiness',
          ),
        ]
      : []),
    ...(dead > 0
      ? [
          warning(
            'group',
            `Group ${group} has ${dead} dead letters.`,
            `nightporter dead list ${group}; then dead retry, edit or skip`,
          ),
        ]
      : []),
    ...(setAside > 0
      ? [
          warning(
            'group',
            `Group ${group} has set ${setAside} messages aside.`,
            `nightporter dead set-aside ${group}; then dead dismiss`,
          ),
        ]
      : []),
  ];
}

/** As a worker checks at its start: a message is kept as long as the broker keeps it, and can come again as long once more. */
function judgeInbox({ group, inboxRetentionMs }: GroupFacts, brokerRetentionMs: number): readonly Finding[] {
  const minMs = 2 * brokerRetentionMs;
  if (inboxRetentionMs === null || inboxRetentionMs >= minMs) return [];
  return [
    warning(
      'inbox-retention',
      `Group ${group} keeps inbox records for ${Math.round(inboxRetentionMs / HOUR_MS)} h; the broker keeps messages for ${Math.round(brokerRetentionMs / HOUR_MS)} h, and twice that is needed.`,
      `Raise INBOX_RETENTION_DAYS of its worker to ${Math.ceil(minMs / DAY_MS)} or more`,
    ),
  ];
}

function error(check: Check, text: string, mend: string): Finding {
  return { severity: 'error', check, text, mend };
}

function warning(check: Check, text: string, mend: string): Finding {
  return { severity: 'warning', check, text, mend };
}

function note(check: Check, text: string): Finding {
  return { severity: 'note', check, text, mend: null };
}
