import type { SetAsideMessage } from '@nightporter/ledger';
import type { Command } from 'commander';
import { EXIT, type Cli } from '../cli.js';
import { connected } from '../connection.js';
import { withDecision, type DecisionFlags } from '../decision.js';
import { answer, at, table, whole } from '../output.js';
import { failureOf, lettersOf, ofGroup, type GroupFlags } from './of-group.js';

export function asideCommand(cli: Cli): Command {
  return ofGroup(
    'set-aside',
    'Lists messages without a place in any sequence: unreadable, altered, or in conflict. They hold nothing up.',
  )
    .option('--limit <number>', 'messages at most', whole({ min: 1, max: 1_000 }), 100)
    .option('--json', 'print one line of JSON', false)
    .addHelpText(
      'after',
      '\nExit codes: 0 listed, also where there is none, 2 wrong use, 3 it could not be found out.\n',
    )
    .action((group: string, flags: GroupFlags & { readonly limit: number }) =>
      connected(flags, async ({ deployment }) => {
        const found = await lettersOf(deployment, group).listSetAside(flags.limit);
        const shown = found.map(({ body, ...message }) => ({ ...message, body: Buffer.from(body).toString('utf8') }));
        answer(cli, flags, shown, toldAside);
      }),
    );
}

function toldAside(messages: readonly Omit<SetAsideMessage, 'body'>[]): string {
  const rows = messages.map((message) => [
    at(message.firstFailedAt),
    message.id,
    `${message.count}`,
    failureOf(message),
  ]);
  return rows.length === 0 ? 'None.\n' : table(['first came', 'id', 'times', 'why'], rows);
}

export function dismissCommand(cli: Cli): Command {
  return withDecision(
    ofGroup('dismiss', 'Takes a message that was set aside from the list; it comes back should a copy come.').argument(
      '<id>',
      'id, as set-aside lists it',
    ),
  )
    .option('--json', 'print one line of JSON', false)
    .addHelpText(
      'after',
      '\nExit codes: 0 done, 1 it is not there, or came again meanwhile, 2 wrong use, 3 look whether it was done.\n',
    )
    .action((group: string, id: string, flags: GroupFlags & DecisionFlags) =>
      connected(flags, async ({ deployment }) => {
        const letters = lettersOf(deployment, group);
        const found = (await letters.listSetAside()).find((message) => message.id === id);
        const decision = { by: flags.by, reason: flags.reason };
        const result =
          found === undefined ? { kind: 'gone' as const } : await letters.dismiss({ id, count: found.count }, decision);
        answer(cli, flags, result, ({ kind }) =>
          kind === 'done'
            ? 'done\n'
            : kind === 'gone'
              ? 'there is no such message\n'
              : 'it came again meanwhile: look at it\n',
        );
        if (result.kind !== 'done') cli.exitCode = EXIT.no;
      }),
    );
}
