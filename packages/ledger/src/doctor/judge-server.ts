import { error, note, warning, type Finding } from './finding.js';
import type { DeploymentFacts } from './judge.js';

const MONGODB_MAJOR_MIN = 6;
const HISTORY_MIN_MS = 24 * 3_600_000;
/** What workers rely on, as the server has it unless it is told otherwise. */
const TRANSACTION_LIFETIME_MS = 60_000;

export function judgeServer({ engine: { engine, version }, replicaSet }: DeploymentFacts): readonly Finding[] {
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
  ];
}

export function judgeHistory({ history, of, producers }: DeploymentFacts['histories'][number]): readonly Finding[] {
  const oplog = `oplog of ${of} (${producers.join(', ')})`;
  if (history.kind === 'unknown')
    return [note('history', `How far back the ${oplog} reaches is not known: ${history.reason}.`)];
  if (history.reachMs >= HISTORY_MIN_MS) return [];
  return [
    note(
      'history',
      `The ${oplog} reaches back ${Math.round(history.reachMs / 60_000)} min. A relay that is down for longer starts with a sweep. It grows to its size: db.adminCommand({ replSetResizeOplog: 1, minRetentionHours: 24 }) holds a day.`,
    ),
  ];
}

/** For what a worker that is told nothing may take, or what an operator says of his own. */
export function judgeTransactionLifetime(
  { limitMs, of }: DeploymentFacts['transactionLifetimes'][number],
  handlersMs: number,
): readonly Finding[] {
  const check = 'transaction-lifetime';
  if (limitMs === null) {
    const text = `When ${of} ends a transaction by itself is not known: it does not say, or the user may not ask. Workers rely on ${TRANSACTION_LIFETIME_MS / 1_000} s.`;
    return [note(check, text)];
  }
  const seconds = limitMs / 1_000;
  if (limitMs <= handlersMs) {
    const text = `${of} ends a transaction after ${seconds} s, and one of a worker may take ${handlersMs / 1_000} s (handlerMs + transactionMs): a handler that takes long never commits.`;
    const neededSeconds = Math.max(TRANSACTION_LIFETIME_MS / 1_000, Math.floor(handlersMs / 1_000) + 1);
    const mend = `db.adminCommand({ setParameter: 1, transactionLifetimeLimitSeconds: ${neededSeconds} }) in mongosh, on each member`;
    return [warning(check, text, mend)];
  }
  if (limitMs >= TRANSACTION_LIFETIME_MS) return [];
  const text = `${of} ends a transaction after ${seconds} s instead of ${TRANSACTION_LIFETIME_MS / 1_000} s. A worker whose definition gives its handlers more time than that says so in its log when it starts.`;
  return [note(check, text)];
}
