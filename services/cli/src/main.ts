#!/usr/bin/env node
import { Command, CommanderError } from 'commander';
import { reconcileCommand } from './reconcile/command.js';

const EXIT_WRONG_USE = 2;
const EXIT_FAILED = 3;

const program = new Command('nightporter')
  .description('Where every event is, and what to do about it.')
  .addCommand(reconcileCommand());
// Also for subcommands, which are made before the program is told.
for (const command of [program, ...program.commands]) command.exitOverride();

try {
  await program.parseAsync();
} catch (error) {
  if (error instanceof CommanderError) process.exitCode = error.exitCode === 0 ? 0 : EXIT_WRONG_USE;
  else {
    process.stderr.write(`nightporter: ${error instanceof Error ? error.message : String(error)}\n`);
    process.exitCode = EXIT_FAILED;
  }
}
