import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { runCli } from '../run.js';

const SHELLS = ['bash', 'zsh'] as const;
type Shell = (typeof SHELLS)[number];
const isThere = (shell: Shell): boolean => spawnSync(shell, ['-c', ':']).status === 0;

let folder: string;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'nightporter-completions-'));
  for (const shell of SHELLS) writeFileSync(join(folder, shell), await scriptFor(shell));
});
afterAll(() => {
  rmSync(folder, { recursive: true });
});

async function scriptFor(shell: string): Promise<string> {
  let text = '';
  const io = {
    out: (part: string) => (text += part),
    err: () => undefined,
    isInteractive: false,
    ask: () => Promise.resolve(''),
    signal: new AbortController().signal,
  };
  expect(await runCli(['completions', shell], io)).toBe(0);
  return text;
}

/**
 * What is offered at the end of a line. Zsh leaves it to the line editor, which is not here, to take only what begins with the word; its function
 * runs as bashcompinit runs it.
 */
function offered(shell: Shell, line: string): readonly string[] {
  const words = line.split(' ');
  const emulation = 'autoload -U compinit && compinit -u -d "$2/dump"; ';
  const script = `${shell === 'zsh' ? emulation : ''}source "$1"; shift 2
ask() { ${shell === 'zsh' ? 'emulate -L sh; setopt kshglob noshglob braceexpand; ' : ''}_nightporter; }
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); ask; printf '%s\\n' "\${COMPREPLY[@]}"`;
  const { status, stderr, stdout } = spawnSync(shell, ['-c', script, shell, join(folder, shell), folder, ...words], {
    encoding: 'utf8',
    timeout: 10_000,
  });
  expect([status, stderr]).toEqual([0, '']);
  const found = stdout.split('\n').filter((word) => word !== '');
  return shell === 'zsh' ? found.filter((word) => word.startsWith(words.at(-1) ?? '')) : found;
}

describe.each(SHELLS.filter(isThere))('the completions of %s', (shell) => {
  it.each([
    ['nightporter dea', ['dead']],
    ['nightporter dead re', ['retry']],
    ['nightporter dead list inventory --c', ['--code']],
    ['nightporter dead --json list inventory --c', ['--code']],
    ['nightporter dead list --limit 5 inventory --ty', ['--type']],
    ['nightporter dead list --type dead --co', ['--code']],
    ['nightporter outbox list --status P', ['PROCESSING', 'PENDING']],
    ['nightporter completions z', ['zsh']],
    ['nightporter dead list inventory --code ', []],
    ['nightporter nonsense sta', ['status']],
  ])('offer at the end of "%s": %j', (line, words) => {
    expect(offered(shell, line)).toEqual(words);
  });

  it('offer the options of the command, and not those of the one above it', () => {
    expect(offered(shell, 'nightporter dead list inventory ')).not.toContain('retry');
    expect(offered(shell, 'nightporter dead list inventory ')).toContain('--failure');
  });
});

describe('the completions of fish', () => {
  it('have the values to choose from, and take the next word of an option for its value', async () => {
    const script = await scriptFor('fish');
    const condition = '__fish_seen_subcommand_from outbox; and __fish_seen_subcommand_from list';
    expect(script).toContain(
      `complete -c nightporter -n '${condition}' -l status -r -f -a 'DEAD FAILED PROCESSING PENDING'\n`,
    );
  });
});
