/** What is wrong with a deployment, and what mends it: pure, so that every check is a table in the test. */
import { error, warning, type Finding } from './finding.js';
import { judgeHistory, judgeServer, judgeTransactionLifetime } from './judge-server.js';

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
  /** How far back the oplog of each deployment reaches that has producers. */
  readonly histories: readonly {
    readonly of: string;
    readonly producers: readonly string[];
    readonly history:
      { readonly kind: 'known'; readonly reachMs: number } | { readonly kind: 'unknown'; readonly reason: string };
  }[];
  /** When each deployment ends a transaction by itself; null: it does not say, or the user may not ask. */
  readonly transactionLifetimes: readonly { readonly of: string; readonly limitMs: number | null }[];
  /** The longest that a transaction of the workers may be open: a handler and what it shares the transaction with. */
  readonly handlersMs: number;
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
const SKEW_MAX_MS = 2_000;
const PENDING_MAX_MS = 60_000;
const LAG_MAX_MS = 5 * 60_000;

export function judgeDeployment(facts: DeploymentFacts): readonly Finding[] {
  return [
    ...judgeServer(facts),
    ...facts.missingIndexes.map(({ index, namespace, role }) =>
      error('indexes', `${namespace} has no index ${index}.`, `Start ${role} again: it creates what is missing.`),
    ),
    ...facts.histories.flatMap((history) => judgeHistory(history)),
    ...facts.transactionLifetimes.flatMap((lifetime) => judgeTransactionLifetime(lifetime, facts.handlersMs)),
    ...judgeClocks(facts),
    ...judgeRelay(facts),
    ...facts.outboxes.flatMap((outbox) => judgeOutbox(outbox)),
    ...facts.groups.flatMap((group) => [...judgeGroup(group), ...judgeInbox(group, facts.brokerRetentionMs)]),
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

function judgeRelay({ histories, relay }: DeploymentFacts): readonly Finding[] {
  if (relay === null)
    return [
      warning(
        'relay',
        'No database has leases of a relay: none has ever run, or it is elsewhere.',
        'Start the relay, or name its database: --relay-db <name>',
      ),
    ];
  const { checkpoints, holders, pauses } = relay;
  // A checkpoint covers all outboxes of its shard, so the oplog that is left behind first counts.
  const historyMs = Math.min(
    ...histories.map(({ history }) => (history.kind === 'known' ? history.reachMs : Infinity)),
  );
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
      .filter(({ ageMs }) => ageMs > historyMs / 2 && ageMs > 10 * 60_000)
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
