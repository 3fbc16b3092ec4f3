import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { spawnSync } from 'node:child_process';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeEach, expect, onTestFinished, test } from 'vitest';
import { prepare, type Recipe } from './prepare.js';

let cache: string;
let told: string[];
let builds: number;

beforeEach(() => {
  cache = mkdtempSync(join(tmpdir(), 'nightporter-cache-'));
  told = [];
  builds = 0;
  onTestFinished(() => {
    rmSync(cache, { recursive: true, force: true });
  });
});

function at() {
  return { cache, progress: (line: string) => told.push(line) };
}

/** Something with a file at the top and one below. */
const thing: Recipe = {
  name: 'thing-1',
  title: 'The thing',
  limitMs: 2_000,
  build: (folder) => {
    builds += 1;
    mkdirSync(join(folder, 'lib'));
    writeFileSync(join(folder, 'lib', 'a.jar'), 'content of a');
    writeFileSync(join(folder, 'b.txt'), 'content of b');
    return Promise.resolve();
  },
};

/** The id of a process that has ended. */
function deadProcess(): number {
  return spawnSync(process.execPath, ['--version']).pid;
}

test('what is prepared is made once and found afterwards', async () => {
  const folder = await prepare(thing, at());
  expect(readFileSync(join(folder, 'lib', 'a.jar'), 'utf8')).toBe('content of a');
  expect(await prepare(thing, at())).toBe(folder);
  expect(builds).toBe(1);
  expect(readdirSync(cache)).toEqual(['thing-1']);
});

test.each([
  [
    'a file of it is missing',
    (folder: string) => {
      rmSync(join(folder, 'lib', 'a.jar'));
    },
    /lib\/a\.jar is missing/,
  ],
  [
    'a file of it is cut short',
    (folder: string) => {
      truncateSync(join(folder, 'b.txt'), 3);
    },
    /b\.txt has 3 bytes instead of 12/,
  ],
  [
    'its manifest is missing',
    (folder: string) => {
      rmSync(join(folder, 'manifest.json'));
    },
    /no readable manifest/,
  ],
])('it is made anew when %s', async (_how, harm, why) => {
  const folder = await prepare(thing, at());
  harm(folder);
  await prepare(thing, at());
  expect(builds).toBe(2);
  expect(told.join()).toMatch(why);
  expect(readFileSync(join(folder, 'lib', 'a.jar'), 'utf8')).toBe('content of a');
});

test('a failed making leaves nothing behind, and the next one succeeds', async () => {
  const failing = { ...thing, build: () => Promise.reject(new Error('no network')) };
  await expect(prepare(failing, at())).rejects.toThrow('no network');
  expect(readdirSync(cache)).toEqual([]);
  await prepare(thing, at());
  expect(builds).toBe(1);
});

test('two that prepare the same at once make it once', async () => {
  let release: () => void = () => undefined;
  const gate = new Promise<void>((resolve) => (release = resolve));
  const slow = {
    ...thing,
    build: async (folder: string) => {
      await gate;
      await thing.build(folder);
    },
  };
  const both = [prepare(slow, at()), prepare(slow, at())];
  await expect.poll(() => told.join()).toMatch(`waiting for process ${process.pid}`);
  release();
  await Promise.all(both);
  expect(builds).toBe(1);
});

test('a lock whose holder is dead is taken over, and what the dead process had begun is removed', async () => {
  mkdirSync(join(cache, `thing-1.partial-${deadProcess()}-abcd`));
  const holder = { pid: deadProcess(), host: (await import('node:os')).hostname() };
  writeFileSync(join(cache, 'thing-1.lock'), JSON.stringify(holder));
  await prepare(thing, at());
  expect(readdirSync(cache)).toEqual(['thing-1']);
});

test('a lock that is held too long is named in the error, with its holder', async () => {
  writeFileSync(join(cache, 'thing-1.lock'), JSON.stringify({ pid: process.pid, host: 'elsewhere' }));
  const impatient = { ...thing, limitMs: 150 };
  await expect(prepare(impatient, at())).rejects.toMatchObject({
    code: 'NP_EMBEDDED_PREPARE_FAILED',
    message: expect.stringMatching(new RegExp(`Process ${process.pid} has held .*thing-1\\.lock for more than 150 ms`)),
  });
  expect(existsSync(join(cache, 'thing-1'))).toBe(false);
});
