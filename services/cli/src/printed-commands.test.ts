import type { Command } from 'commander';
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import type { Cli } from './cli.js';
import { createProgram } from './program.js';

const root = fileURLToPath(new URL('../../../', import.meta.url));

/** What people read: sources with their messages, and pages. */
function filesIn(folder: string): readonly string[] {
  return readdirSync(join(root, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) return ['node_modules', 'dist'].includes(entry.name) ? [] : filesIn(path);
    return /\.(ts|md|ya?ml)$/.test(entry.name) && !entry.name.endsWith('.test.ts') ? [path] : [];
  });
}

/** Where a line or a quotation begins with it, or where it follows what leads to a command; not what only has its name. */
const PRINTED =
  /(?:^|['"`(]|: |then |nightporter -- ) *(?<!(?:name|title): '?)nightporter ((?:--)?[a-z][^\n`'";,)]*)/gm;

/** What is wrong with a printed command line; null where the program takes its commands and options. */
function wrongIn(program: Command, words: readonly string[]): string | null {
  let command = program;
  for (const [place, word] of words.entries()) {
    // Which command that is, only the running program knows.
    if (word === '…' && command.commands.length > 0) return null;
    if (word.startsWith('--')) {
      const long = word.split('=', 1)[0] ?? '';
      if (long !== '--help' && !command.options.some((option) => option.long === long))
        return `${command.name()} has no ${long}`;
      continue;
    }
    const child = command.commands.find((one) => one.name() === word);
    if (child !== undefined) command = child;
    else if (place === 0 || (command.commands.length > 0 && /^[a-z-]+$/.test(word)))
      return `${command.name()} has no command ${word}`;
  }
  return null;
}

describe('the command lines that messages and pages print', () => {
  it('are ones that the program takes', () => {
    const silent = { out: () => undefined, err: () => undefined, isInteractive: false, ask: () => Promise.resolve('') };
    const cli: Cli = { io: { ...silent, signal: new AbortController().signal }, exitCode: 0 };
    const program = createProgram(cli);
    const printed = ['README.md', ...['packages', 'services', 'docs', 'docker'].flatMap(filesIn)].flatMap((file) =>
      [...readFileSync(join(root, file), 'utf8').matchAll(PRINTED)].map(([, line = '']) => ({ file, line })),
    );
    expect(printed.length).toBeGreaterThan(100);
    const wrong = printed.flatMap(({ file, line }) => {
      const found = wrongIn(
        program,
        line
          .replaceAll(/\$\{[^}]*\}/g, ' … ')
          .trim()
          .split(/\s+/),
      );
      return found === null ? [] : [`${file}: nightporter ${line}: ${found}`];
    });
    expect(wrong).toEqual([]);
  });
});
