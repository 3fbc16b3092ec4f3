import { operatorActions, type ActionRecord } from '@nightporter/ledger';
import { Command } from 'commander';
import type { Cli } from '../cli.js';
import { connected, withConnection, type ConnectionFlags } from '../connection.js';
import { answer, at, table, whole } from '../output.js';

interface Flags extends ConnectionFlags {
  readonly json: boolean;
  readonly limit: number;
}

export function logCommand(cli: Cli): Command {
  return withConnection(
    new Command('log').description('Tells what operators did, in every database, the newest first.'),
  )
    .option('--limit <number>', 'actions at most', whole({ min: 1, max: 1_000 }), 50)
    .option('--json', 'print one line of JSON', false)
    .addHelpText(
      'after',
      '\nExit codes: 0 listed, also where there is none, 2 wrong use, 3 it could not be found out.\n\nExample:\n  nightporter log --limit 10\n',
    )
    .action((flags: Flags) =>
      connected(flags, async ({ deployment }) => {
        answer(cli, flags, await operatorActions(deployment, flags.limit), told);
      }),
    );
}

function told(actions: readonly ActionRecord[]): string {
  const rows = actions.map((act) => [at(act.at), act.by, act.action, act.target, act.database, act.reason]);
  return rows.length === 0 ? 'None.\n' : table(['at', 'by', 'action', 'upon', 'in', 'reason'], rows);
}
