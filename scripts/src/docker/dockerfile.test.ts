import { validate } from 'dockerfile-utils';
import { mkdirSync, mkdtempSync, existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it, onTestFinished } from 'vitest';
import { DOCKER_FOLDER } from './compose.js';
import { readDockerfile } from './dockerfile.js';
import { buildStages } from './dry-run.js';
import { ignoreRules } from './ignore-rules.js';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const text = readFileSync(`${DOCKER_FOLDER}Dockerfile`, 'utf8');
const stages = readDockerfile(text);
const image = stages.at(-1)!;
const commands = stages.flatMap(({ steps }) => steps.flatMap((step) => (step.kind === 'run' ? [step.command] : [])));

describe('docker/Dockerfile', () => {
  it('has nothing that a linter objects to', () => {
    expect(validate(text)).toEqual([]);
  });

  it('makes an image that is not run by root, checks its health with Node, and gets signals itself', () => {
    expect(image.user).toBe('node');
    expect(image.entrypoint).toEqual(['node']);
    expect(image.healthCheck).toEqual(['node', 'docker/healthcheck.mjs']);
    expect(existsSync(`${ROOT}${image.healthCheck![1]!}`)).toBe(true);
  });

  it('copies into the image what other stages made, and installs nothing there', () => {
    expect(image.steps.filter(({ kind }) => kind === 'run')).toEqual([]);
    for (const step of image.steps) if (step.kind === 'copy') expect(step.from).not.toBeNull();
  });

  it('installs by the lock file only, and for the image without what is needed for development', () => {
    const installs = commands.filter((command) => command.startsWith('pnpm install'));
    expect(installs).toHaveLength(2);
    for (const command of installs) expect(command).toContain(' --frozen-lockfile ');
    const packages = stages.find(({ name }) => name === 'packages')!;
    expect(packages.steps).toContainEqual({ kind: 'run', command: expect.stringContaining(' --prod ') });
  });

  it('takes the package manager that every other command takes, and one Node for all stages', () => {
    const [, pnpm] = /const PNPM = '(pnpm@[\d.]+)'/.exec(readFileSync(`${ROOT}scripts/run.mjs`, 'utf8')) ?? [];
    expect(commands[0]).toBe(`npm install --global ${pnpm!}`);
    const images = stages.map(({ base }) => base).filter((base) => !stages.some(({ name }) => name === base));
    expect(new Set(images).size).toBe(1);
    expect(images[0]).toMatch(/^node:\d+\.\d+\.\d+-[a-z]+-slim$/);
  });
});

describe('.dockerignore', () => {
  const rules = ignoreRules(readFileSync(`${ROOT}.dockerignore`, 'utf8'));

  it.each([
    '.git/config',
    '.env',
    'docker/.env',
    'packages/mongo/.env.local',
    'node_modules/zod/package.json',
    'packages/mongo/node_modules/mongodb/package.json',
    'packages/mongo/dist/index.js',
    'packages/mongo/src/connect.test.ts',
    'services/relay/relay.log',
    'test/package.json',
    '.cache/embedded/x',
  ])('keeps %s from the build', (path) => {
    expect(rules.ignores(path)).toBe(true);
  });

  it.each([
    'package.json',
    'pnpm-lock.yaml',
    'packages/mongo/src/connect.ts',
    'services/cli/bin/nightporter.js',
    'docker/healthcheck.mjs',
  ])('lets %s through', (path) => {
    expect(rules.ignores(path)).toBe(false);
  });
});

describe('the dry run of a Dockerfile', () => {
  const progress = () => undefined;

  function trial(dockerfile: string, files: Readonly<Record<string, string>>) {
    const root = mkdtempSync(join(tmpdir(), 'nightporter-dry-run-'));
    onTestFinished(() => {
      rmSync(root, { recursive: true });
    });
    const [context, folder, cacheFolder] = [join(root, 'context'), join(root, 'stages'), join(root, 'cache')];
    for (const [path, content] of Object.entries(files)) {
      mkdirSync(dirname(join(context, path)), { recursive: true });
      writeFileSync(join(context, path), content);
    }
    const ignored = files['.dockerignore'] ?? '';
    return () =>
      buildStages(readDockerfile(dockerfile), { context, ignored, folder, cacheFolder, stepLimitMs: 10_000, progress });
  }

  it('copies what .dockerignore lets through, carries commands out in their stage, and copies between stages', () => {
    const build = trial(
      [
        'ARG BASE=node:1',
        'FROM ${BASE} AS tools',
        'ENV WORD=hello',
        'WORKDIR /app',
        'FROM tools AS build',
        'COPY . .',
        'RUN --mount=type=cache,target=/pnpm/store mkdir -p /out/made && ls > /out/made/list && echo "$WORD" > /out/made/word',
        'FROM ${BASE} AS image',
        'WORKDIR /app',
        'COPY --from=build --chown=node:node /out/made ./',
        'CMD ["x"]',
      ].join('\n'),
      { '.dockerignore': '*\n!kept.txt', 'kept.txt': '', 'secret.txt': '' },
    );
    const { root, environment } = build().get('image')!;
    expect(readFileSync(join(root, 'app/list'), 'utf8')).toBe('kept.txt\n');
    expect(readFileSync(join(root, 'app/word'), 'utf8')).toBe('hello\n');
    expect(environment).toEqual({});
  });

  it('fails where a step fails, with what it said', () => {
    expect(trial('FROM a AS b\nRUN echo no such thing >&2; exit 3', {})).toThrow(/exit 3[\s\S]*no such thing/);
  });

  it.each([
    ['FROM a AS b\nADD x y', 'ADD is not known here'],
    ['FROM a AS b\nCMD node x', 'CMD is not in exec form'],
    ['FROM a', 'has no name'],
    ['FROM a AS b\nCOPY --from=c /x /y', 'no such stage'],
  ])('refuses %j', (dockerfile, message) => {
    expect(trial(dockerfile, {})).toThrow(message);
  });
});
