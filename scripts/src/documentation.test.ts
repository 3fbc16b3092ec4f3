import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { createInventoryWorker } from '@nightporter/inventory-worker';
import { ERROR_CODES } from '@nightporter/protocol';
import { eventAttributes, messagingAttributes } from '@nightporter/runtime';
import { describe, expect, it } from 'vitest';

const root = join(dirname(fileURLToPath(import.meta.url)), '..', '..');
const read = (...path: string[]): string => readFileSync(join(root, ...path), 'utf8');

/** Sources, pages and configuration below a folder, without what is built or installed. */
function filesIn(folder: string): readonly string[] {
  return readdirSync(join(root, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) return ['node_modules', 'dist'].includes(entry.name) ? [] : filesIn(path);
    return /\.(ts|mjs|md|ya?ml|json|svg|sh)$/.test(entry.name) ? [path] : [];
  });
}

/** The cells of every row of the Markdown tables in a document, without head and rule. */
function tableRows(markdown: string): readonly string[][] {
  return markdown
    .split('\n')
    .filter((line) => line.startsWith('|') && !/^\|[\s:-]+\|/.test(line))
    .map((line) =>
      line
        .slice(1, -1)
        .split(/(?<!\\)\|/)
        .map((cell) => cell.trim()),
    );
}

describe('the commands that messages and pages print', () => {
  const ours = [
    'README.md',
    'CONTRIBUTING.md',
    ...['packages', 'services', 'scripts', 'test', 'docs', 'docker'].flatMap(filesIn),
  ];
  /** What matches, by file: `[file, first group]`. */
  const printed = (pattern: RegExp): readonly (readonly [string, string])[] =>
    ours.flatMap((file) => [...read(file).matchAll(pattern)].map(([, name = '']) => [file, name] as const));

  it('are scripts of package.json where they begin with npm run', () => {
    const { scripts } = JSON.parse(read('package.json')) as { scripts: Record<string, string> };
    const named = printed(/\bnpm run (?:-s |--silent )?([a-z][\w:-]*)/g);
    expect(named.length).toBeGreaterThan(50);
    expect(named.filter(([, name]) => !(name in scripts))).toEqual([]);
  });

  it('are services that there are where they start one', () => {
    const named = printed(/\bnode services\/([\w-]+)\/dist\/main\.js/g);
    expect(named.length).toBeGreaterThan(3);
    expect(named.filter(([, name]) => !existsSync(join(root, 'services', name, 'src', 'main.ts')))).toEqual([]);
  });
});

describe('the error table', () => {
  const documented = [...read('docs', 'errors.md').matchAll(/^\| `(NP_[A-Z_]+)`/gm)].map((match) => match[1]);

  it('documents every code', () => {
    expect(Object.keys(ERROR_CODES).filter((code) => !documented.includes(code))).toEqual([]);
  });

  it('documents no code that does not exist, and none twice', () => {
    expect(documented.filter((code) => !(String(code) in ERROR_CODES))).toEqual([]);
    expect(new Set(documented).size).toBe(documented.length);
  });
});

describe('the table of invariants', () => {
  const rows = tableRows(read('docs', 'invariants.md')).filter(([id]) => /^I\d+$/.test(id ?? ''));
  const links = (cell: string): readonly { file: string; title: string | undefined }[] =>
    [...cell.matchAll(/`([\w./-]+\.ts)`(?: › "([^"]+)")?/g)].map((match) => ({
      file: match[1] ?? '',
      title: match[2],
    }));

  it('names each of the fourteen promises once', () => {
    expect(rows.map(([id]) => id)).toEqual(Array.from({ length: 14 }, (_, index) => `I${index + 1}`));
  });

  it('and the tables below it name files that exist, and tests that stand in them', () => {
    const wrong: string[] = [];
    for (const [id, ...cells] of tableRows(read('docs', 'invariants.md'))) {
      for (const { file, title } of cells.flatMap(links)) {
        if (!existsSync(join(root, file))) wrong.push(`${id ?? ''}: no file ${file}`);
        else if (title !== undefined && !read(file).includes(title))
          wrong.push(`${id ?? ''}: no test "${title}" in ${file}`);
      }
    }
    expect(wrong).toEqual([]);
  });

  it('gives code and a test to every promise that it calls kept', () => {
    const bare = rows.filter(
      ([, , state, code = '', test = '']) => state === 'kept' && (links(code).length === 0 || links(test).length === 0),
    );
    expect(bare.map(([id]) => id)).toEqual([]);
  });
});

describe('the pages of idempotency strategies', () => {
  const pages = ['inbox', 'business-unique-key', 'state-machine', 'optimistic-version', 'naturally-idempotent'];
  const withoutSpace = (text: string): string => text.replace(/\s+/g, '').replaceAll(',}', '}').replaceAll(',)', ')');

  it.each(pages)('%s shows code that stands in its example, which is compiled and run', (page) => {
    const text = read('docs', 'strategies', `${page}.md`);
    const example = /\.\.\/examples\/strategies\/src\/([\w-]+\.ts)/.exec(text)?.[1] ?? '';
    const [, snippet = ''] = /```ts\n([\s\S]*?)```/.exec(text) ?? [];
    expect(snippet).not.toBe('');
    expect(withoutSpace(read('docs', 'examples', 'strategies', 'src', example))).toContain(
      withoutSpace(snippet).replace(/,$/, ''),
    );
  });
});

describe('the page of the shop', () => {
  it('shows all of the loyalty worker, as it is compiled and run', () => {
    expect(read('docs', 'example.md')).toContain(read('docs', 'examples', 'loyalty-worker', 'src', 'worker.ts'));
  });
});

describe('the page for operators of consumers', () => {
  const rows = tableRows(read('docs', 'operating', 'consumers.md'));
  const plain = (cell = ''): string => cell.replaceAll('`', '');

  it('has every setting that every worker has, with unit and default', () => {
    const { config } = createInventoryWorker();
    const own = ['STOCK', 'TOPIC', 'ORDERS_DB', 'ORDERS_LEDGER_URL', 'ORDERS_LEDGER_TOKEN'];
    const byWorker = ['MONGODB_DB', 'PORT', 'GROUP'];
    // Those of traces are the same for every process, and have a page of their own.
    const settings = Object.values(config).filter(({ name }) => !own.includes(name) && !name.startsWith('OTEL_'));
    const expected = settings.map(({ name, unit = '', default: value = '(required)' }) => [
      name,
      unit,
      byWorker.includes(name) ? 'by worker' : value,
    ]);
    const shown = rows.filter(([, , , when]) => when !== undefined).map((cells) => cells.slice(0, 3).map(plain));
    expect(shown.filter(([name]) => name !== 'setting').sort()).toEqual(expected.sort());
  });

  it('has every figure of a snapshot', () => {
    const fields = [...read('packages', 'consumer', 'src', 'snapshot.ts').matchAll(/^ {2}readonly (\w+):/gm)];
    const names = fields.map(([, name]) => name);
    expect(names).toContain('acknowledged');
    expect(names.filter((name) => !rows.some(([cell]) => plain(cell) === name))).toEqual([]);
  });

  it('has no figure that does not exist', () => {
    const snapshot = read('packages', 'consumer', 'src', 'snapshot.ts');
    const section = read('docs', 'operating', 'consumers.md').split('## Figures')[1]?.split('\n## ')[0] ?? '';
    const figures = tableRows(section).map(([cell]) => plain(cell));
    expect(figures.filter((name) => name !== 'figure' && !snapshot.includes(`readonly ${name}:`))).toEqual([]);
  });
});

describe('the protocol package', () => {
  it('reads neither clock nor chance of its own', () => {
    const folder = join(root, 'packages', 'protocol', 'src');
    const guilty = readdirSync(folder)
      .filter((file) => file.endsWith('.ts') && !file.endsWith('.test.ts'))
      .filter((file) =>
        /\bDate\b|Math\.random|setTimeout|setInterval|performance\./.test(read('packages', 'protocol', 'src', file)),
      );
    expect(guilty).toEqual([]);
  });
});

describe('the page of traces', () => {
  const page = read('docs', 'tracing.md');
  const firstCells = tableRows(page).map(([cell = '']) => cell);

  it('has every setting of traces', () => {
    const { config } = createInventoryWorker();
    const names = Object.values(config).map(({ name }) => name);
    const missing = names.filter((name) => name.startsWith('OTEL_') && !firstCells.includes(`\`${name}\``));
    expect(missing).toEqual([]);
  });

  it('has every attribute of messages and events', () => {
    const attributes = {
      ...messagingAttributes({ name: 'send', type: 'send', topic: 't', group: 'g' }),
      ...eventAttributes({
        eventId: 'e',
        eventType: 't',
        eventVersion: 1,
        aggregate: 'a',
        aggregateVersion: 1,
        correlationId: 'c',
        messageId: 'm',
        messageGroup: 'g',
      }),
    };
    const missing = Object.keys(attributes).filter((name) => !firstCells.some((cell) => cell.includes(`\`${name}\``)));
    expect(missing).toEqual([]);
  });
});
