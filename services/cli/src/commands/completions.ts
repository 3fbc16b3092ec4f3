import { Argument, Command } from 'commander';
import type { Cli } from '../cli.js';

/** Prints what a shell needs to complete commands and options. */
export function completionsCommand(cli: Cli, root: () => Command): Command {
  return new Command('completions')
    .description('Prints completions for a shell.')
    .addArgument(new Argument('<shell>', 'which shell').choices(['bash', 'zsh', 'fish']))
    .addHelpText(
      'after',
      '\nExit codes: 0 printed, 2 wrong use.\n\nExamples:\n  source <(nightporter completions bash)\n  nightporter completions fish > ~/.config/fish/completions/nightporter.fish\n',
    )
    .action((shell: 'bash' | 'zsh' | 'fish') => {
      cli.io.out(SCRIPTS[shell](pathsOf(root())));
    });
}

interface Path {
  /** Names of commands, without the program's. */
  readonly path: string;
  readonly words: readonly string[];
}

function pathsOf(command: Command, path = ''): readonly Path[] {
  const children = command.commands.filter((child) => child.name() !== 'help');
  const options = command.options.flatMap(({ long }) => (typeof long === 'string' ? [long] : []));
  const words = [...children.map((child) => child.name()), ...options, '--help'];
  return [
    { path, words },
    ...children.flatMap((child) => pathsOf(child, path === '' ? child.name() : `${path} ${child.name()}`)),
  ];
}

const SCRIPTS = {
  bash: bashScript,
  zsh: (paths: readonly Path[]) => `autoload -U +X bashcompinit && bashcompinit\n${bashScript(paths)}`,
  fish: fishScript,
} as const;

function bashScript(paths: readonly Path[]): string {
  const cases = paths.map(({ path, words }) => `    "${path}") words="${words.join(' ')}" ;;`);
  return [
    '_nightporter() {',
    '  local path="" word words=""',
    '  for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do',
    '    case "$word" in -*) break ;; esac',
    '    path="${path:+$path }$word"',
    '  done',
    '  case "$path" in',
    ...cases,
    // An argument stands behind the command's names.
    '    *) path="${path%% *}" ;;',
    '  esac',
    '  if [ -z "$words" ]; then case "$path" in',
    ...cases,
    '  esac; fi',
    '  COMPREPLY=($(compgen -W "$words" -- "${COMP_WORDS[COMP_CWORD]}"))',
    '}',
    'complete -F _nightporter nightporter',
    '',
  ].join('\n');
}

function fishScript(paths: readonly Path[]): string {
  const lines = paths.flatMap(({ path, words }) => {
    const condition =
      path === ''
        ? '__fish_use_subcommand'
        : path
            .split(' ')
            .map((name) => `__fish_seen_subcommand_from ${name}`)
            .join('; and ');
    return words.map((word) =>
      word.startsWith('--')
        ? `complete -c nightporter -n '${condition}' -l ${word.slice(2)}`
        : `complete -c nightporter -n '${condition}' -f -a ${word}`,
    );
  });
  return `${lines.join('\n')}\n`;
}
