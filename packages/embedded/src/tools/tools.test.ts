import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { findJava, findJavaCompiler, parseJavaMajor } from './java.js';
import { findMaven } from './maven.js';
import { findPython, judgePython } from './python.js';
import { runTool } from './run-tool.js';

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'nightporter-tools-'));
  onTestFinished(() => {
    rmSync(folder, { recursive: true, force: true });
  });
});

/** Puts a program on the PATH that is nothing else there. */
function tool(name: string, script: string, under = folder): void {
  mkdirSync(under, { recursive: true });
  writeFileSync(join(under, name), `#!/bin/sh\n${script}\n`);
  chmodSync(join(under, name), 0o755);
}

function missing(message: RegExp) {
  return { code: 'NP_EMBEDDED_TOOL_MISSING', message: expect.stringMatching(message) as string };
}

describe('Java', () => {
  test.each([
    ['openjdk version "17.0.15" 2025-04-15', 17],
    ['java version "1.8.0_392"', 8],
    ['openjdk version "25" 2025-09-16', 25],
    ['no such thing', undefined],
  ])('%s is major version %s', (output, major) => {
    expect(parseJavaMajor(output)).toBe(major);
  });

  test('none at all is said, with how to get one', async () => {
    await expect(findJava({ PATH: folder })).rejects.toMatchObject(
      missing(/Java 17 or newer, but there is no java on the PATH or in JAVA_HOME\. Install a JDK.*ROCKETMQ_ENDPOINTS/),
    );
  });

  test('one that is too old is named with its version', async () => {
    tool('java', `echo 'openjdk version "11.0.2"' >&2`);
    await expect(findJava({ PATH: folder })).rejects.toMatchObject(missing(/java is version 11\. Install/));
  });

  test('one that does not run is named', async () => {
    tool('java', 'exit 1');
    await expect(findJava({ PATH: folder })).rejects.toMatchObject(missing(/java does not run/));
  });

  test('JAVA_HOME goes before the PATH where it is new enough', async () => {
    tool('java', `echo 'openjdk version "17.0.1"' >&2`);
    tool('java', `echo 'openjdk version "21"' >&2`, join(folder, 'new', 'bin'));
    tool('java', `echo 'openjdk version "11"' >&2`, join(folder, 'old', 'bin'));
    const found = async (home: string) => (await findJava({ PATH: folder, JAVA_HOME: join(folder, home) })).command;
    expect(await found('new')).toBe(join(folder, 'new', 'bin', 'java'));
    expect(await found('old')).toBe(join(folder, 'java'));
  });

  test('a runtime without compiler is told apart from a JDK', () => {
    tool('java', '');
    const java = { command: join(folder, 'java'), build: '' };
    expect(() => findJavaCompiler(java, { PATH: folder })).toThrow(
      /comes without javac and jar: it is a runtime, not a JDK/,
    );
    tool('javac', '');
    tool('jar', '');
    expect(findJavaCompiler(java, { PATH: '' })).toEqual({ javac: join(folder, 'javac'), jar: join(folder, 'jar') });
  });

  test('the compiler is found beside what a link on the PATH leads to', () => {
    const home = join(folder, 'jdk', 'bin');
    for (const name of ['java', 'javac', 'jar']) tool(name, '', home);
    symlinkSync(join(home, 'java'), join(folder, 'java'));
    const java = { command: join(folder, 'java'), build: '' };
    expect(findJavaCompiler(java, { PATH: '' }).javac).toBe(join(home, 'javac'));
  });
});

test('a missing Maven is said, with how to get it', () => {
  expect(() => findMaven({ PATH: folder })).toThrow(/no mvn on the PATH\. Install it/);
});

describe('Python', () => {
  test.each([
    ['version 3.11\nvenv\n', { kind: 'usable' }],
    ['version 3.9\nvenv\n', { kind: 'unusable', why: 'is version 3.9' }],
    ['version 2.7\n', { kind: 'unusable', why: 'is version 2.7' }],
    ['version 3.12\n', { kind: 'unusable', why: '(version 3.12) comes without venv and ensurepip' }],
  ])('%j is judged', (probed, verdict) => {
    expect(judgePython(probed)).toEqual(verdict);
  });

  test('none at all is said, with how to get one', async () => {
    await expect(findPython({ PATH: folder })).rejects.toMatchObject(
      missing(/Python 3\.10 or newer with venv, but there is no Python on the PATH\. Install Python.*MONGODB_URI/),
    );
  });

  test('the first that is good enough is taken, and the others are named when none is', async () => {
    tool('python3', 'echo version 3.9; echo venv');
    await expect(findPython({ PATH: folder })).rejects.toMatchObject(missing(/python3 is version 3\.9/));
    tool('python3.12', 'echo version 3.12; echo venv');
    expect(await findPython({ PATH: folder })).toBe(join(folder, 'python3.12'));
  });
});

describe('a tool that is run', () => {
  const run = { arguments: [], environment: process.env, limitMs: 5_000 };

  test('gives what it printed on both streams, line by line and whole', async () => {
    tool('talk', 'echo one; echo two >&2');
    const lines: string[] = [];
    const output = await runTool({ ...run, command: join(folder, 'talk'), onLine: (line) => lines.push(line) });
    expect(lines.sort()).toEqual(['one', 'two']);
    expect(output).toContain('one\n');
  });

  test('tells the end of its output when it fails', async () => {
    tool('fail', 'echo the reason; exit 3');
    await expect(runTool({ ...run, command: join(folder, 'fail') })).rejects.toMatchObject({
      code: 'NP_EMBEDDED_PREPARE_FAILED',
      message: expect.stringMatching(/fail ended with exit code 3; the end of its output:\n {2}the reason$/) as string,
    });
  });

  test('is ended at its limit', async () => {
    tool('hang', 'exec sleep 30');
    await expect(runTool({ ...run, command: join(folder, 'hang'), limitMs: 100 })).rejects.toThrow(
      /took longer than 100 ms/,
    );
  });

  test('that is not there is said', async () => {
    await expect(runTool({ ...run, command: join(folder, 'nothing') })).rejects.toThrow(/could not be run: .*ENOENT/);
  });
});
