import {
  createDeadLetters,
  type ActionResult,
  type DeadLetter,
  type DeadLetterFilter,
  type DeadLetters,
  type Deployment,
  type SetAsideMessage,
  type SkipResult,
} from '@nightporter/ledger';
import { NightporterError, eventId } from '@nightporter/protocol';
import { Command } from 'commander';
import { readFile } from 'node:fs/promises';
import { EXIT, type Cli } from '../cli.js';
import { connected, withConnection, type ConnectionFlags } from '../connection.js';
import {
  isConfirmed,
  withConfirmation,
  withDecision,
  type ConfirmationFlags,
  type DecisionFlags,
} from '../decision.js';
import { answer, at, count, section, table, whole } from '../output.js';
import { aggregate } from './aggregate.js';

interface Flags extends ConnectionFlags {
  readonly json: boolean;
}

interface FilterFlags {
  readonly type?: string;
  readonly code?: string;
  readonly failure?: string;
  readonly aggregate?: DeadLetterFilter['aggregate'];
  readonly limit: number;
}

type ActFlags = Flags & DecisionFlags & ConfirmationFlags & FilterFlags;

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

/** Throws NP_ACTION_INVALID where the group's database is not known. */
function lettersOf({ groups }: Deployment, group: string): DeadLetters {
  const home = groups.find((place) => place.group === group);
  if (home !== undefined) return createDeadLetters(home);
  const known = groups.map((place) => place.group).join(', ');
  throw new NightporterError(
    'NP_ACTION_INVALID',
    `Where group ${group} keeps its data is not known; accepted: --group-db ${group}=<database>, or one of: ${known}.`,
  );
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

function ofGroup(name: string, description: string): Command {
  return withConnection(new Command(name).description(description).argument('<group>', 'consumer group'));
}

function listCommand(cli: Cli): Command {
  return withFilter(ofGroup('list', 'Lists dead letters, those that failed first before others.'), 100)
    .option('--json', 'print one line of JSON', false)
    .addHelpText(
      'after',
      '\nExit codes: 0 listed, also where there is none, 2 wrong use, 3 it could not be found out.\n\nExample:\n  nightporter dead list inventory --type OrderPaid\n',
    )
    .action((group: string, flags: Flags & FilterFlags) =>
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

function failureOf({ failure }: Pick<DeadLetter, 'failure'>): string {
  return failure === null ? '-' : `${failure.code}: ${failure.message}`;
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
    .action((group: string, id: string, flags: Flags) =>
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
    .option('--json', 'print one line of JSON', false)
    .addHelpText(
      'after',
      `
Exit codes: 0 done, 1 some were not there, changed meanwhile, or not confirmed, 2 wrong use, 3 look whether it was done.

Examples:
  nightporter dead ${action} inventory 01936f9e-… --by ada --reason "the product exists now"${yes}
  nightporter dead ${action} inventory --code NP_HANDLER_FAILED --failure "no such product" --by ada --reason "imported"${yes}
`,
    )
    .action((group: string, id: string | undefined, flags: ActFlags) =>
      connected(flags, async ({ deployment }) => {
        const letters = lettersOf(deployment, group);
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

function editCommand(cli: Cli): Command {
  return withDecision(
    ofGroup('edit', 'Has other data applied in place of the event’s own; the message as it came is kept.').argument(
      '<eventId>',
      'id of the event',
    ),
  )
    .requiredOption('--data <file>', 'JSON file with the data to apply')
    .option('--json', 'print one line of JSON', false)
    .addHelpText(
      'after',
      '\nExit codes: 0 done, 1 it is not there, or changed meanwhile, 2 wrong use, 3 look whether it was done.\n\nExample:\n  nightporter dead edit inventory 01936f9e-… --data fixed.json --by ada --reason "the quantity was negative"\n',
    )
    .action((group: string, id: string, flags: Flags & DecisionFlags & { readonly data: string }) =>
      connected(flags, async ({ deployment }) => {
        const data = await jsonIn(flags.data);
        const letters = lettersOf(deployment, group);
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

function asideCommand(cli: Cli): Command {
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
    .action((group: string, flags: Flags & { readonly limit: number }) =>
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

function dismissCommand(cli: Cli): Command {
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
    .action((group: string, id: string, flags: Flags & DecisionFlags) =>
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
