import { NightporterError } from '@nightporter/protocol';
import { Option, type Command } from 'commander';
import { EXIT, type Cli } from './cli.js';

/** Who decides and why: both go on record. */
export interface DecisionFlags {
  readonly by: string;
  readonly reason: string;
}

export function withDecision(command: Command): Command {
  return command
    .addOption(
      new Option('--by <name>', 'who decides; goes on record').env('NIGHTPORTER_OPERATOR').makeOptionMandatory(),
    )
    .addOption(new Option('--reason <text>', 'why; goes on record').makeOptionMandatory());
}

export interface ConfirmationFlags {
  readonly yes: boolean;
}

/** For what cannot be undone. */
export function withConfirmation(command: Command): Command {
  return command.option('--yes', 'do it without asking', false);
}

/**
 * Whether somebody agrees to what cannot be undone. Rejects with NP_ACTION_INVALID where nobody can be asked; whoever does not agree
 * ends the command with 1.
 */
export async function isConfirmed(cli: Cli, { yes }: ConfirmationFlags, what: string): Promise<boolean> {
  if (yes) return true;
  if (!cli.io.isInteractive) {
    throw new NightporterError(
      'NP_ACTION_INVALID',
      `${what} This cannot be undone, and nobody can be asked; accepted: --yes.`,
    );
  }
  const said = await cli.io.ask(`${what} This cannot be undone. Type yes to go on: `);
  if (said.trim().toLowerCase() === 'yes') return true;
  cli.io.err('Nothing was done.\n');
  cli.exitCode = EXIT.no;
  return false;
}
