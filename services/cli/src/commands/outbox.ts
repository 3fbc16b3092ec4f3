import { actOnOutbox, listOutbox, type OutboxAct, type OutboxEntry, type UnpublishedStatus } from '@nightporter/ledger';
import { eventId } from '@nightporter/protocol';
import { Command, Option } from 'commander';
import { EXIT, type Cli } from '../cli.js';
import { connected, withConnection, type ConnectionFlags } from '../connection.js';
import {
  isConfirmed,
  withConfirmation,
  withDecision,
  type ConfirmationFlags,
  type DecisionFlags,
} from '../decision.js';
import { answer, at, table, whole } from '../output.js';

interface ListFlags extends ConnectionFlags {
  readonly json: boolean;
  readonly status: UnpublishedStatus;
  readonly limit: number;
}

type ActFlags = ConnectionFlags & DecisionFlags & ConfirmationFlags & { readonly json: boolean };

export function outboxCommand(cli: Cli): Command {
  return new Command('outbox')
    .description('Events that the relay has not published: lists them, has it try again, or skips them.')
    .addCommand(listCommand(cli))
    .addCommand(actCommand(cli, 'retry'))
    .addCommand(actCommand(cli, 'skip'));
}

function listCommand(cli: Cli): Command {
  const statuses = ['DEAD', 'FAILED', 'PROCESSING', 'PENDING'];
  return withConnection(
    new Command('list').description('Lists rows of one status, those that were written first before others.'),
  )
    .addOption(new Option('--status <status>', 'status in the outbox').choices(statuses).default('DEAD'))
    .option('--limit <number>', 'rows of each producer at most', whole({ min: 1, max: 1_000 }), 100)
    .option('--json', 'print one line of JSON', false)
    .addHelpText(
      'after',
      '\nExit codes: 0 listed, also where there is none, 2 wrong use, 3 it could not be found out.\n\nExample:\n  nightporter outbox list --status FAILED\n',
    )
    .action((flags: ListFlags) =>
      connected(flags, async ({ deployment }) => {
        answer(cli, flags, await listOutbox(deployment, flags), told);
      }),
    );
}

function told(entries: readonly OutboxEntry[]): string {
  const rows = entries.map((entry) => [
    at(entry.createdAt),
    entry.producer,
    entry.eventId,
    entry.eventType,
    `${entry.aggregate} ${entry.version}`,
    `${entry.attempts}`,
    at(entry.nextRetryAt),
    entry.lastError ?? '-',
  ]);
  const head = ['created at', 'producer', 'event', 'type', 'aggregate', 'attempts', 'next', 'last error'];
  return rows.length === 0 ? 'None.\n' : table(head, rows);
}

const ACTIONS = {
  retry: {
    description: 'Has the relay try an event again that it has given up.',
    warning: null,
    example: 'nightporter outbox retry 01936f9e-… --by ada --reason "the topic exists now"',
  },
  skip: {
    description:
      'Has the relay publish a tombstone in place of an event that it has given up, so that what waits behind it goes on. No group will ever apply it.',
    warning: 'The event is skipped for every group.',
    example: 'nightporter outbox skip 01936f9e-… --by ada --reason "made by a bug, order was cancelled by hand" --yes',
  },
} as const;

function actCommand(cli: Cli, action: 'retry' | 'skip'): Command {
  const { description, example, warning } = ACTIONS[action];
  const command = withDecision(
    withConnection(new Command(action).description(description).argument('<eventId>', 'id of the event')),
  );
  if (warning !== null) withConfirmation(command);
  return command
    .option('--json', 'print one line of JSON', false)
    .addHelpText(
      'after',
      `\nExit codes: 0 done, 1 it is not dead (any more), or not confirmed, 2 wrong use, 3 look whether it was done.\n\nExample:\n  ${example}\n`,
    )
    .action((id: string, flags: ActFlags) =>
      connected(flags, async ({ deployment }) => {
        if (warning !== null && !(await isConfirmed(cli, flags, warning))) return;
        const outcome = await actOnOutbox(deployment, action, {
          eventId: eventId(id),
          by: flags.by,
          reason: flags.reason,
        });
        answer(cli, flags, outcome, (value) => `${said(value)}\n`);
        if (outcome.kind !== 'done') cli.exitCode = EXIT.no;
      }),
    );
}

function said(outcome: OutboxAct): string {
  switch (outcome.kind) {
    case 'done':
      return 'The row is PENDING again; the relay sends it.';
    case 'refused':
      return `Nothing was done: the event is ${outcome.status}, and only what is DEAD can be decided upon.`;
    case 'missing':
      return 'Nothing was done: no outbox has the event.';
  }
}
