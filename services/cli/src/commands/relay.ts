import { relayStanding, type RelayStanding } from '@nightporter/ledger';
import { pauseRelay, resumeRelay, type PauseOutcome } from '@nightporter/mongo';
import { NightporterError } from '@nightporter/protocol';
import { Command } from 'commander';
import { EXIT, type Cli } from '../cli.js';
import { connected, withConnection, type Connection, type ConnectionFlags } from '../connection.js';
import { withDecision, type DecisionFlags } from '../decision.js';
import { answer, at } from '../output.js';
import { relayText } from './status.js';

interface Flags extends ConnectionFlags {
  readonly json: boolean;
}

type PauseFlags = Flags & DecisionFlags & { readonly topic?: string };

export function relayCommand(cli: Cli): Command {
  return new Command('relay')
    .description('Leases, checkpoints, repairs and pauses of the relay.')
    .addCommand(showCommand(cli))
    .addCommand(pauseCommand(cli, 'pause'))
    .addCommand(pauseCommand(cli, 'resume'));
}

function showCommand(cli: Cli): Command {
  return withConnection(
    new Command('show').description(
      'Shows who holds which lease, how old each checkpoint is, what is paused, and the last repairs.',
    ),
  )
    .option('--json', 'print one line of JSON', false)
    .addHelpText(
      'after',
      '\nExit codes: 0 a relay runs, 1 nobody holds a lease, 2 wrong use, 3 it could not be found out.\n\nExample:\n  nightporter relay show\n',
    )
    .action((flags: Flags) =>
      connected(flags, async (connection) => {
        const found: RelayStanding = await relayStanding(relayOf(connection));
        answer(cli, flags, found, relayText);
        if (!found.leases.some(({ isAlive }) => isAlive)) cli.exitCode = EXIT.no;
      }),
    );
}

/** Throws NP_ACTION_INVALID where the relay's database is not known. */
function relayOf({ deployment: { relay } }: Connection): NonNullable<Connection['deployment']['relay']> {
  if (relay !== null) return relay;
  throw new NightporterError('NP_ACTION_INVALID', "The relay's database is not known; accepted: --relay-db <name>.");
}

const TEXTS = {
  pause: {
    description:
      'Has every relay stop sending, everything or one topic, until somebody resumes. Rows stay PENDING; nothing is lost.',
    done: 'Paused; relays stop within a second or two.',
    example: 'nightporter relay pause --topic orders-events --by ada --reason "orders-worker is being mended"',
    run: pauseRelay,
  },
  resume: {
    description: 'Takes a pause back; what waited goes on in order.',
    done: 'Resumed.',
    example: 'nightporter relay resume --topic orders-events --by ada --reason "mended"',
    run: resumeRelay,
  },
} as const;

function pauseCommand(cli: Cli, action: 'pause' | 'resume'): Command {
  const { description, done, example, run } = TEXTS[action];
  return withDecision(withConnection(new Command(action).description(description)))
    .option('--topic <name>', 'only this topic (default: everything)')
    .option('--json', 'print one line of JSON', false)
    .addHelpText(
      'after',
      `\nExit codes: 0 done, 1 it is so already, 2 wrong use, 3 look whether it was done.\n\nExample:\n  ${example}\n`,
    )
    .action((flags: PauseFlags) =>
      connected(flags, async (connection) => {
        const { client, database } = relayOf(connection);
        const outcome = await run(client, database, { topic: flags.topic ?? null, by: flags.by, reason: flags.reason });
        answer(cli, flags, outcome, (value) => `${said(value, done)}\n`);
        if (outcome.kind !== 'done') cli.exitCode = EXIT.no;
      }),
    );
}

function said(outcome: PauseOutcome, done: string): string {
  if (outcome.kind === 'done') return done;
  const { standing } = outcome;
  return standing === null
    ? 'It is not paused.'
    : `It is paused already: by ${standing.by} since ${at(standing.at)} (${standing.reason}).`;
}
