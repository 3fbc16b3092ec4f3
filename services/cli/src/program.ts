import { Command } from 'commander';
import type { Cli } from './cli.js';
import { aggregateCommand } from './commands/aggregate.js';
import { archiveCommand } from './commands/archive.js';
import { auditCommand } from './commands/audit.js';
import { completionsCommand } from './commands/completions.js';
import { deadCommand } from './commands/dead.js';
import { doctorCommand } from './commands/doctor.js';
import { groupsCommand } from './commands/groups.js';
import { logCommand } from './commands/log.js';
import { outboxCommand } from './commands/outbox.js';
import { relayCommand } from './commands/relay.js';
import { replayCommand } from './commands/replay.js';
import { searchCommand } from './commands/search.js';
import { sloCommand } from './commands/slo.js';
import { statusCommand } from './commands/status.js';
import { tailCommand } from './commands/tail.js';
import { timelineCommand } from './commands/timeline.js';
import { notificationsCommand } from './notifications/command.js';
import { reconcileCommand } from './reconcile/command.js';

/** As in docs/cli.md, wherever it is printed. */
const HELP_WIDTH = 110;

/** The whole command line. */
export function createProgram(cli: Cli): Command {
  const program: Command = new Command('nightporter')
    .description('Where every event is, and what to do about it.')
    .addCommand(statusCommand(cli))
    .addCommand(timelineCommand(cli))
    .addCommand(aggregateCommand(cli))
    .addCommand(searchCommand(cli))
    .addCommand(auditCommand(cli))
    .addCommand(sloCommand(cli))
    .addCommand(doctorCommand(cli))
    .addCommand(tailCommand(cli))
    .addCommand(outboxCommand(cli))
    .addCommand(deadCommand(cli))
    .addCommand(replayCommand(cli))
    .addCommand(groupsCommand(cli))
    .addCommand(relayCommand(cli))
    .addCommand(archiveCommand(cli))
    .addCommand(logCommand(cli))
    .addCommand(reconcileCommand(cli))
    .addCommand(notificationsCommand(cli))
    .addCommand(completionsCommand(cli, () => program))
    .addHelpText(
      'after',
      `
Exit codes: 0 done and nothing wrong, 1 the answer is no (differences, not there, refused), 2 wrong use, 3 it could not be found out.
`,
    );
  prepare(program, cli);
  return program;
}

/** Subcommands are made before the program is told where its output goes, so each is told. */
function prepare(command: Command, cli: Cli): void {
  command.exitOverride();
  command.configureOutput({
    getOutHelpWidth: () => HELP_WIDTH,
    getErrHelpWidth: () => HELP_WIDTH,
    writeOut: (text) => {
      cli.io.out(text);
    },
    writeErr: (text) => {
      cli.io.err(text);
    },
  });
  for (const child of command.commands) prepare(child, cli);
}
