import {
  type ActionResult,
  type DeadLetter,
  type DeadLetterFilter,
  type DeadLetters,
  type SkipResult,
} from '@nightporter/ledger';
import { NightporterError, eventId } from '@nightporter/protocol';
import { Command } from 'commander';
import { readFile } from 'node:fs/promises';
import { EXIT, type Cli } from '../cli.js';
import { connected } from '../connection.js';
import {
  isConfirmed,
  withConfirmation,
  withDecision,
  type ConfirmationFlags,
  type DecisionFlags,
} from '../decision.js';
import { answer, at, count, section, table, whole } from '../output.js';
import { aggregate } from './aggregate.js';
import { failureOf, lettersOf, ofGroup, type GroupFlags } from './of-group.js';
import { asideCommand, dismissCommand } from './set-aside.js';

interface FilterFlags {
  readonly type?: string;
  readonly code?: string;
  readonly failure?: string;
  readonly aggregate?: DeadLetterFilter['aggregate'];
  readonly limit: number;
}

type ActFlags = GroupFlags & DecisionFlags & ConfirmationFlags & FilterFlags & { readonly dryRun: boolean };

export function deadCommand(cli: Cli): Command {
  return new Command('dead')
    .description('Dead letters of a group: events that it has given up, each of which holds its aggregate.')
    .addCommand(listCommand(cli))
    .addCommand(showCommand(cli))
    .addCommand(actCommand(cli, 'retry'))
    .addCommand(editCommand(cli))
    .addCommand(actCommand(cli, 'skip'))
    .addCommand(asideCommand(cli))
    .addCommand(dismissCommand(cli));
}

function withFilter(command: Command, limitDefault: number): Command {
  return command
    .option('--type <name>', 'only events of this type')
    .option('--code <code>', 'only failures of this code, such as NP_HANDLER_FAILED')
    .option('--failure <text>', 'only failures whose message has this text')
    .option('--aggregate <aggregate>', 'only this aggregate, source/type/id', aggregate)
    .option('--limit <number>', 'dead letters at most', whole({ min: 1, max: 1_000 }), limitDefault);
}

function filterOf({ aggregate: of, code, failure, type }: FilterFlags): DeadLetterFilter {
  return {
    ...(type === undefined ? {} : { eventType: type }),
    ...(code === undefined ? {} : { code }),
    ...(failure === undefined ? {} : { reason: failure }),
    ...(of === undefined ? {} : { aggregate: of }),
  };
}

function listCommand(cli: Cli): Command {
  return withFilter(ofGroup('list', 'Lists dead letters, those that failed first before others.'), 100)
    .option('--json', 'print one line of JSON', false)
    .addHelpText(
      'after',
      '\nExit codes: 0 listed, also where there is none, 2 wrong use, 3 it could not be found out.\n\nExample:\n  nightporter dead list inventory --type OrderPaid\n',
    )
    .action((group: string, flags: GroupFlags & FilterFlags) =>
      connected(flags, async ({ deployment }) => {
        answer(cli, flags, await lettersOf(deployment, group).list(filterOf(flags), flags.limit), toldList);
      }),
    );
}

function toldList(letters: readonly DeadLetter[]): string {
  const rows = letters.map((letter) => [
    at(letter.firstFailedAt),
    letter.eventId,
    letter.eventType,
    `${letter.aggregate} ${letter.version}`,
    `${letter.attempts}`,
    failureOf(letter),
  ]);
  return rows.length === 0
    ? 'None.\n'
    : table(['first failed', 'event', 'type', 'aggregate', 'attempts', 'failure'], rows);
}

type Shown = NonNullable<Awaited<ReturnType<DeadLetters['show']>>>;

function showCommand(cli: Cli): Command {
  return ofGroup('show', 'Shows one dead letter whole: message, failure, what waits behind it, what was done with it.')
    .argument('<eventId>', 'id of the event')
    .option('--json', 'print one line of JSON', false)
    .addHelpText(
      'after',
      '\nExit codes: 0 shown, 1 there is none, 2 wrong use, 3 it could not be found out.\n\nExample:\n  nightporter dead show inventory 01936f9e-…\n',
    )
    .action((group: string, id: string, flags: GroupFlags) =>
      connected(flags, async ({ deployment }) => {
        const shown = await lettersOf(deployment, group).show(eventId(id));
        if (shown === null) cli.exitCode = EXIT.no;
        answer(cli, flags, shown, (value) =>
          value === null ? `Group ${group} has no dead letter ${id}.\n` : toldShown(value),
        );
      }),
    );
}

function toldShown({ actions, deadLetter: letter, waitingBehind }: Shown): string {
  const acts = actions.map((act) => [at(act.at), act.by, act.action, act.reason]);
  return [
    `${letter.eventType} ${letter.eventId}, version ${letter.version} of ${letter.aggregate}\n`,
    `dead after ${count(letter.attempts, 'attempt')}, first at ${at(letter.firstFailedAt)}, last at ${at(letter.lastFailedAt)}\n`,
    `${count(waitingBehind, 'event')} of the aggregate behind it\n`,
    section('Failure', `${failureOf(letter)}\n${letter.failure?.stack ?? ''}\n`),
    section('Message', `${JSON.stringify(letter.message.envelope, null, 2)}\n`),
    letter.edited === null
      ? ''
      : section('As it came', `${JSON.stringify(letter.edited.original.envelope, null, 2)}\n`),
    section('What was done with it', table(['at', 'by', 'action', 'reason'], acts)),
  ].join('');
}

const ACTIONS = {
  retry: { does: 'Has the group try a dead letter again, or all that a filter finds', warning: null },
  skip: {
    does: 'Settles a dead letter without effect, or all that a filter finds',
    warning: 'The group will never apply what is skipped.',
  },
} as const;

function actCommand(cli: Cli, action: 'retry' | 'skip'): Command {
  const { does, warning } = ACTIONS[action];
  const command = withFilter(
    withDecision(
      ofGroup(action, `${does}; what waits behind follows in order.`).argument(
        '[eventId]',
        'id of the event; without it, a filter is needed',
      ),
    ),
    1_000,
  );
  if (warning !== null) withConfirmation(command);
  const yes = warning === null ? '' : ' --yes';
  return command
    .option('--dry-run', `say what a filter finds, and ${action} nothing`, false)
    .option('--json', 'print one line of JSON', false)
    .addHelpText(
      'after',
      `
Exit codes: 0 done, 1 some were not there, changed meanwhile, or not confirmed, 2 wrong use, 3 look whether it was done.

Examples:
  nightporter dead ${action} inventory 01936f9e-… --by ada --reason "the product exists now"${yes}
  nightporter dead ${action} inventory --code NP_HANDLER_FAILED --failure "no such product" --by ada --reason "imported" --dry-run
  nightporter dead ${action} inventory --code NP_HANDLER_FAILED --failure "no such product" --by ada --reason "imported"${yes}
`,
    )
    .action((group: string, id: string | undefined, flags: ActFlags) =>
      connected(flags, async ({ deployment }) => {
        const letters = lettersOf(deployment, group);
        if (flags.dryRun) {
          answer(cli, flags, await plannedOf(letters, id, flags), toldList);
          return;
        }
        if (warning !== null && !(await isConfirmed(cli, flags, warning))) return;
        const results = await actOn(letters, { action, id, flags });
        answer(
          cli,
          flags,
          results,
          (all) =>
            `${all.map((one) => `${one.eventId}: ${said(one.result)}\n`).join('')}${all.length === 0 ? 'None.\n' : ''}`,
        );
        if (results.some(({ result }) => result.kind !== 'done')) cli.exitCode = EXIT.no;
      }),
    );
}

async function plannedOf(
  letters: DeadLetters,
  id: string | undefined,
  flags: ActFlags,
): Promise<readonly DeadLetter[]> {
  if (id === undefined) return letters.planBulk({ filter: filterOf(flags), limit: flags.limit });
  const shown = await letters.show(eventId(id));
  return shown === null ? [] : [shown.deadLetter];
}

interface Acted {
  readonly eventId: string;
  readonly result: ActionResult | SkipResult;
}

/** Upon the row as it is now: who works on it between this look and the action is told as `changed`. */
async function actOn(
  letters: DeadLetters,
  {
    action,
    flags,
    id,
  }: { readonly action: 'retry' | 'skip'; readonly id: string | undefined; readonly flags: ActFlags },
): Promise<readonly Acted[]> {
  const { by, limit, reason } = flags;
  if (id === undefined) return (await letters.bulk(action, { by, reason, filter: filterOf(flags), limit })).results;
  const shown = await letters.show(eventId(id));
  if (shown === null) return [{ eventId: id, result: { kind: 'gone' } }];
  const target = { eventId: eventId(id), revision: shown.deadLetter.revision };
  return [{ eventId: id, result: await letters[action](target, { by, reason }) }];
}

function said(result: ActionResult | SkipResult): string {
  switch (result.kind) {
    case 'done':
      return 'done';
    case 'changed':
      return `changed meanwhile: it is ${result.state} now`;
    case 'gone':
      return 'there is no such dead letter';
    case 'not-next':
      return `a lower version is not settled yet: the position is ${result.position}`;
  }
}

type EditFlags = GroupFlags & DecisionFlags & ConfirmationFlags & { readonly data: string };

function editCommand(cli: Cli): Command {
  const command = withDecision(
    ofGroup('edit', 'Has other data applied in place of the event’s own; the message as it came is kept.').argument(
      '<eventId>',
      'id of the event',
    ),
  );
  return withConfirmation(command)
    .requiredOption('--data <file>', 'JSON file with the data to apply')
    .option('--json', 'print one line of JSON', false)
    .addHelpText(
      'after',
      '\nExit codes: 0 done, 1 it is not there, changed meanwhile, or not confirmed, 2 wrong use, 3 look whether it was done.\n\nExample:\n  nightporter dead edit inventory 01936f9e-… --data fixed.json --by ada --reason "the quantity was negative" --yes\n',
    )
    .action((group: string, id: string, flags: EditFlags) =>
      connected(flags, async ({ deployment }) => {
        const data = await jsonIn(flags.data);
        const letters = lettersOf(deployment, group);
        if (!(await isConfirmed(cli, flags, 'The group will apply this data in place of the event’s own.'))) return;
        const shown = await letters.show(eventId(id));
        const target = { eventId: eventId(id), revision: shown?.deadLetter.revision ?? 0 };
        const result: ActionResult =
          shown === null
            ? { kind: 'gone' }
            : await letters.editAndRetry(target, { by: flags.by, reason: flags.reason, data });
        answer(cli, flags, result, (value) => `${said(value)}\n`);
        if (result.kind !== 'done') cli.exitCode = EXIT.no;
      }),
    );
}

async function jsonIn(file: string): Promise<unknown> {
  try {
    return JSON.parse(await readFile(file, 'utf8')) as unknown;
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new NightporterError(
      'NP_ACTION_INVALID',
      `${file} has no data to apply: ${why}; accepted: a file with one JSON value.`,
      { cause: error },
    );
  }
}
