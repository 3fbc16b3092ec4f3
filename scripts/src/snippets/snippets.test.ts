import { readFileSync, readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { compileModules } from './compile.js';
import { extractSnippets, type Snippet } from './extract.js';

const root = join(dirname(fileURLToPath(import.meta.url)), '..', '..', '..');
/** A compiler that reads all packages takes its time on a busy machine. */
const COMPILING = { timeout: 180_000 };

const pages = [
  'README.md',
  'CONTRIBUTING.md',
  ...readdirSync(join(root, 'docs'), { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.md') && !path.split(/[\\/]/).includes('node_modules'))
    .map((path) => `docs/${path}`),
];

const snippets = pages.flatMap((page) =>
  extractSnippets(readFileSync(join(root, page), 'utf8')).map((snippet) => ({ page, ...snippet })),
);

const fenced = (...code: string[]): string => ['```ts', ...code, '```'].join('\n');

describe('The TypeScript on a page', () => {
  it('compiles against the sources, in the README and in every page of docs', COMPILING, () => {
    expect(
      snippets.flatMap((one) => (one.kind === 'malformed' ? `${one.page}:${one.line}: ${one.problem}` : [])),
    ).toEqual([]);
    const modules = snippets.flatMap((one) => (one.kind === 'module' ? [one] : []));
    expect(modules.length).toBeGreaterThan(10);
    expect(compileModules(root, modules)).toEqual([]);
  });

  it('is told by page and line when it does not compile, also inside what a comment puts around it', COMPILING, () => {
    const page = [
      'Some words.',
      '',
      '<!-- snippet:',
      'import { eventId } from "@nightporter/protocol";',
      'const ids = [',
      '  …',
      '];',
      'ids.push(7);',
      '-->',
      '',
      fenced('eventId(1),', 'eventId("2"),'),
    ].join('\n');
    const modules = extractSnippets(page).flatMap((one) =>
      one.kind === 'module' ? [{ page: 'bad.md', lines: one.lines }] : [],
    );
    expect(compileModules(root, modules)).toEqual([
      expect.stringMatching(/^bad\.md:12: Argument of type 'number'/),
      expect.stringMatching(/^bad\.md:8: Argument of type 'number'/),
    ]);
  });
});

describe('A block on a page', () => {
  const texts = (snippet: Snippet | undefined): readonly string[] | undefined =>
    snippet?.kind === 'module' ? snippet.lines.map(({ text }) => text) : undefined;

  it('stands alone without a comment right above it', () => {
    const page = `<!-- snippet:\nhidden();\n-->\n\nWords.\n\n${fenced('a();')}\n\n<!-- prettier-ignore -->\n${fenced('b();')}`;
    expect(extractSnippets(page).map(texts)).toEqual([['a();'], ['b();']]);
  });

  it('stands behind what the comment says, or in its place there', () => {
    const page = `<!-- snippet:\na();\n-->\n\n${fenced('b();')}\n<!-- snippet:\nc(\n…\n);\n-->\n${fenced('d')}`;
    expect(extractSnippets(page).map(texts)).toEqual([
      ['a();', 'b();'],
      ['c(', 'd', ');'],
    ]);
  });

  it('follows the blocks above it where it says so', () => {
    const page = `${fenced('a();')}\n\n<!-- snippet continues -->\n\n${fenced('b();')}`;
    expect(extractSnippets(page).map(texts)).toEqual([['a();'], ['a();', 'b();']]);
  });

  it('is left unchecked only with a reason', () => {
    const page = `<!-- snippet unchecked: pseudo code -->\n${fenced('a b')}\n<!-- snippet unchecked: -->\n${fenced('a b')}`;
    expect(extractSnippets(page)).toEqual([
      { kind: 'unchecked', line: 2, reason: 'pseudo code' },
      { kind: 'malformed', line: 6, problem: 'it is unchecked without a reason' },
    ]);
  });

  it.each([
    ['a comment that means something else', `<!-- snippet contineus -->\n${fenced('a();')}`],
    ['a block without an end', '```ts\na();'],
  ])('is refused for %s', (_name, page) => {
    expect(extractSnippets(page).map(({ kind }) => kind)).toEqual(['malformed']);
  });
});
