import { readFileSync, readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';

const root = fileURLToPath(new URL('../../', import.meta.url));

/** `kind: { status, title }` in what is given to defineProblems. */
const KIND = /^ {2}'?([a-z-]+)'?: \{ status: (\d{3}), title: (?:'([^']+)'|"([^"]+)") \},$/gm;

/** Type, status and title of every problem that the sources define. */
function definedProblems(): readonly string[] {
  const files = ['packages', 'services'].flatMap((folder) =>
    readdirSync(`${root}${folder}`, { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .flatMap(({ name }) => sourcesOf(`${root}${folder}/${name}/src`)),
  );
  return files.flatMap((file) => {
    const text = readFileSync(file, 'utf8');
    // Its own definition has the common ones.
    if (!/\bdefineProblems\b[(<]/.test(text)) return [];
    const found = [...text.matchAll(KIND)].map(
      ([, kind = '', status = '', one, other]) => `urn:nightporter:problem:${kind} ${status} ${one ?? other ?? ''}`,
    );
    // One that is written in another way would be missed in silence.
    expect(found.length, file).toBe(text.match(/\bstatus: \d{3}\b/g)?.length ?? 0);
    return found;
  });
}

function sourcesOf(folder: string): readonly string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts') && !name.endsWith('.test.ts'))
    .map((name) => `${folder}/${name}`);
}

describe('docs/problems.md', () => {
  const page = readFileSync(`${root}docs/problems.md`, 'utf8');
  const rows = page.split('\n').filter((line) => line.startsWith('| `urn:'));
  const cells = rows.map((row) => row.split('|').map((cell) => cell.trim()));

  it('has every type of problem that a service may answer, with its status and title, and no other', () => {
    const told = cells.map(([, type = '', status = '', title = '']) => `${type.slice(1, -1)} ${status} ${title}`);
    expect(told.toSorted()).toEqual(definedProblems().toSorted());
    expect(told.length).toBeGreaterThan(20);
  });

  it('says of each what to do', () => {
    expect(cells.filter(([, , , , advice = '']) => advice === '')).toEqual([]);
  });
});
