import { Argument, Command, type Option } from 'commander';
import type { Cli } from '../cli.js';

/** Prints what a shell needs to complete commands, options and the values that they have to choose from. */
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

interface OptionWords {
  readonly name: string;
  readonly takesValue: boolean;
  /** What its value may be; empty where that is anything. */
  readonly choices: readonly string[];
}

interface Path {
  /** Names of commands, without the program's. */
  readonly path: string;
  /** Names of commands below it, or what its first argument may be. */
  readonly words: readonly string[];
  readonly options: readonly OptionWords[];
}

function pathsOf(command: Command, path = ''): readonly Path[] {
  const children = command.commands.filter((child) => child.name() !== 'help');
  const options = [...command.options.flatMap(optionOf), { name: '--help', takesValue: false, choices: [] }];
  const [first] = command.registeredArguments;
  const words = [...children.map((child) => child.name()), ...(first?.argChoices ?? [])];
  return [
    { path, words, options },
    ...children.flatMap((child) => pathsOf(child, path === '' ? child.name() : `${path} ${child.name()}`)),
  ];
}

function optionOf({ argChoices, long, optional, required }: Option): readonly OptionWords[] {
  return typeof long === 'string' ? [{ name: long, takesValue: required || optional, choices: argChoices ?? [] }] : [];
}

const SCRIPTS = {
  bash: bashScript,
  zsh: (paths: readonly Path[]) => `autoload -U +X bashcompinit && bashcompinit\n${bashScript(paths)}`,
  fish: fishScript,
} as const;

/**
 * The path is the longest that the words before the cursor begin with; options and their values may stand in between, and arguments behind.
 * Without `break` and array slices with offsets, which Bash and Zsh's emulation of it take differently.
 */
function bashScript(paths: readonly Path[]): string {
  const named = paths.filter(({ path }) => path !== '');
  const all = paths.flatMap(({ options }) => options);
  const valued = [...new Set(all.filter(({ takesValue }) => takesValue).map(({ name }) => name))];
  const wordsOf = ({ options, words }: Path): string => [...words, ...options.map(({ name }) => name)].join(' ');
  const choices = paths.flatMap(({ options, path }) =>
    options.flatMap(({ choices: values, name }) =>
      values.length === 0 ? [] : [`    "${path}:${name}") offered="${values.join(' ')}" ;;`],
    ),
  );
  return [
    '_nightporter() {',
    '  local named="" offered="" next="" value="" last="" index=1',
    '  while [ "$index" -lt "$COMP_CWORD" ]; do',
    '    last="${COMP_WORDS[index]}"',
    '    index=$((index + 1))',
    '    if [ -n "$value" ]; then value=""; continue; fi',
    `    case "$last" in ${valued.join('|')}) value="$last"; continue ;; -*) continue ;; esac`,
    '    next="${named:+$named }$last"',
    `    case "$next" in ${named.map(({ path }) => `"${path}"`).join('|')}) named="$next" ;; esac`,
    '  done',
    '  if [ -n "$value" ]; then case "$named:$value" in',
    ...choices,
    // Behind an option that takes anything, only the shell can tell what there is.
    '  esac; else case "$named" in',
    ...paths.map((one) => `    "${one.path}") offered="${wordsOf(one)}" ;;`),
    '  esac; fi',
    '  COMPREPLY=($(compgen -W "$offered" -- "${COMP_WORDS[COMP_CWORD]}"))',
    '}',
    'complete -o default -F _nightporter nightporter',
    '',
  ].join('\n');
}

function fishScript(paths: readonly Path[]): string {
  const lines = paths.flatMap(({ options, path, words }) => {
    const condition =
      path === ''
        ? '__fish_use_subcommand'
        : path
            .split(' ')
            .map((name) => `__fish_seen_subcommand_from ${name}`)
            .join('; and ');
    const complete = `complete -c nightporter -n '${condition}'`;
    return [
      ...words.map((word) => `${complete} -f -a ${word}`),
      ...options.map(({ choices, name, takesValue }) => {
        const values = choices.length === 0 ? '' : ` -f -a '${choices.join(' ')}'`;
        return `${complete} -l ${name.slice(2)}${takesValue ? ' -r' : ''}${values}`;
      }),
    ];
  });
  return `${lines.join('\n')}\n`;
}
