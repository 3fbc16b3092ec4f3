import { status, type Status } from '@nightporter/ledger';
import { Command } from 'commander';
import { EXIT, type Cli } from '../cli.js';
import { connected, withConnection, type ConnectionFlags } from '../connection.js';
import { answer, at, duration, notes, section, table } from '../output.js';

interface Flags extends ConnectionFlags {
  readonly json: boolean;
}

export function statusCommand(cli: Cli): Command {
  return withConnection(new Command('status').description('Tells how outboxes, relay and groups stand.'))
    .option('--json', 'print one line of JSON', false)
    .addHelpText(
      'after',
      `
Exit codes: 0 nothing waits for somebody, 1 something does (dead, paused, or no relay), 2 wrong use, 3 it could not be found out.

Examples:
  nightporter status --mongodb-uri mongodb://127.0.0.1:27017
  nightporter status --group-db points=points,audit=audit@mongodb://other:27017 --json
`,
    )
    .action((flags: Flags) =>
      connected(flags, async ({ client, deployment }) => {
        const found = await status(deployment, client);
        answer(cli, flags, found, toldStatus);
        if (needsSomebody(found)) cli.exitCode = EXIT.no;
      }),
    );
}

function needsSomebody({ groups, outboxes, relay }: Status): boolean {
  const isHeld = relay !== null && (relay.pauses.length > 0 || !relay.leases.some(({ isAlive }) => isAlive));
  const isDead = outboxes.some(({ unsettled }) => unsettled.DEAD.rows > 0);
  return isHeld || isDead || groups.some(({ parked }) => (parked?.dead ?? 0) + (parked?.setAside ?? 0) > 0);
}

function toldStatus(found: Status): string {
  return [
    `${found.engine.engine} ${found.engine.version}, ${at(found.at)}\n`,
    section('Outboxes', outboxTable(found)),
    section('Groups', groupTable(found)),
    found.relay === null ? '' : relayText(found.relay),
    found.notKnown.length === 0 ? '' : '\n',
    notes(found.notKnown),
  ].join('');
}

function outboxTable({ at: now, outboxes }: Status): string {
  return table(
    ['producer', 'pending', 'oldest', 'processing', 'failed', 'dead', 'last published'],
    outboxes.map(({ isCapped, newestPublishedAt, producer, unsettled: { DEAD, FAILED, PENDING, PROCESSING } }) => [
      producer,
      `${PENDING.rows}${isCapped ? '+' : ''}`,
      duration(PENDING.oldestAgeMs),
      `${PROCESSING.rows}`,
      `${FAILED.rows}`,
      `${DEAD.rows}`,
      newestPublishedAt === null
        ? 'never'
        : `${duration(Math.max(0, now.getTime() - newestPublishedAt.getTime()))} ago`,
    ]),
  );
}

function groupTable({ groups }: Status): string {
  return table(
    ['group', 'of', 'state', 'behind', 'sweeps', 'retry', 'waiting', 'dead', 'set aside'],
    groups.map(({ group, lagMs, parked, producer, state, sweeper }) => [
      group,
      producer,
      state,
      duration(lagMs),
      sweeper ?? 'nobody',
      `${parked?.retry ?? '?'}`,
      parked === null ? '?' : `${parked.gap + parked.behind}`,
      `${parked?.dead ?? '?'}`,
      `${parked?.setAside ?? '?'}`,
    ]),
  );
}

export function relayText({
  checkpoints,
  database,
  instances,
  leases,
  pauses,
  repairs,
}: NonNullable<Status['relay']>): string {
  const saved = new Map(checkpoints.map((checkpoint) => [checkpoint.shard, checkpoint]));
  const leaseRows = leases.map(({ epoch, expiresAt, isAlive, owner, shard }) => [
    shard,
    isAlive ? 'held' : 'free',
    `${epoch}`,
    duration(saved.get(shard)?.ageMs ?? null),
    at(expiresAt),
    owner,
  ]);
  const others = instances.filter(({ isAlive }) => isAlive).map(({ owner }) => `${owner}\n`);
  const paused = pauses.map(({ _id, at: since, by, reason }) => [_id, at(since), by, reason]);
  const repaired = repairs.map(({ at: moment, reason, rows, shard }) => [at(moment), shard, `${rows}`, reason]);
  return [
    section(
      `Relay (${database})`,
      leaseRows.length === 0
        ? 'no lease: no relay has ever run here\n'
        : table(['shard', 'lease', 'epoch', 'checkpoint', 'until', 'owner'], leaseRows),
    ),
    section('Instances that share shards', others.join('')),
    section('Paused', table(['what', 'since', 'by', 'reason'], paused)),
    section('Last repairs', table(['at', 'shard', 'rows', 'reason'], repaired)),
  ].join('');
}
