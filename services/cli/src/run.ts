import { isNightporterError } from '@nightporter/protocol';
import { CommanderError } from 'commander';
import { EXIT, type Cli, type Io } from './cli.js';
import { createProgram } from './program.js';

/** Runs one command line; resolves to its exit code. */
export async function runCli(args: readonly string[], io: Io): Promise<number> {
  const cli: Cli = { io, exitCode: EXIT.ok };
  try {
    await createProgram(cli).parseAsync([...args], { from: 'user' });
    return cli.exitCode;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.ok : EXIT.wrongUse;
    const code = isNightporterError(error) ? ` (${error.code})` : '';
    io.err(`nightporter: ${error instanceof Error ? error.message : String(error)}${code}\n`);
    return isNightporterError(error, 'NP_ACTION_INVALID') ? EXIT.wrongUse : EXIT.failed;
  }
}
