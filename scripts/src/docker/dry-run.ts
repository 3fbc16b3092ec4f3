/**
 * Carries out a Dockerfile without a container engine: each stage is a folder, in which its steps happen as they are written there. What
 * a folder cannot be is left out and said so: another user, another Node (`base` images), mounted caches, and a root of its own, in whose
 * place absolute paths are rewritten.
 */
import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readdirSync, statSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import type { Stage, Step } from './dockerfile.js';
import { ignoreRules } from './ignore-rules.js';

export interface DryRunOptions {
  /** The folder that the image would be built from. */
  readonly context: string;
  /** The text of its .dockerignore. */
  readonly ignored: string;
  /** Where the stages come to be; an empty folder. */
  readonly folder: string;
  /** Stands for /pnpm, which the steps mount as a cache: what is there need not be fetched again. */
  readonly cacheFolder: string;
  readonly stepLimitMs: number;
  readonly progress: (line: string) => void;
}

export interface BuiltStage {
  /** Stands for `/`. */
  readonly root: string;
  readonly workingFolder: string;
  readonly environment: Readonly<Record<string, string>>;
}

/** Absolute paths that commands of the Dockerfile name, and that are meant within the stage. */
const OF_THE_STAGE = /(?<![\w./])\/(?=(?:app|out|pnpm)\b)/g;

/** Builds every stage; the last one is the image. Throws where a step fails, with what it said. */
export function buildStages(stages: readonly Stage[], options: DryRunOptions): ReadonlyMap<string, BuiltStage> {
  const built = new Map<string, BuiltStage>();
  for (const stage of stages) {
    const root = join(options.folder, stage.name);
    mkdirSync(root, { recursive: true });
    const base = built.get(stage.base);
    if (base !== undefined) cpSync(base.root, root, { recursive: true, verbatimSymlinks: true });
    let now: BuiltStage = { root, workingFolder: '/', environment: base?.environment ?? {} };
    if (base !== undefined) now = { ...now, workingFolder: base.workingFolder };
    for (const step of stage.steps) {
      options.progress(`${stage.name}: ${describe(step)}`);
      now = carryOut(step, now, { ...options, built });
    }
    built.set(stage.name, now);
  }
  return built;
}

type Surroundings = DryRunOptions & { readonly built: ReadonlyMap<string, BuiltStage> };

function carryOut(step: Step, now: BuiltStage, at: Surroundings): BuiltStage {
  switch (step.kind) {
    case 'folder':
      mkdirSync(join(now.root, step.path), { recursive: true });
      return { ...now, workingFolder: step.path };
    case 'environment':
      return { ...now, environment: { ...now.environment, ...step.values } };
    case 'copy':
      copy(step, now, at);
      return now;
    case 'run':
      run(step.command, now, at);
      return now;
  }
}

function copy(step: Step & { kind: 'copy' }, now: BuiltStage, at: Surroundings): void {
  const target = within(now, step.target);
  const isFolder = step.target.endsWith('/') || step.target === '.';
  for (const source of step.sources) {
    if (step.from === null) {
      copyContext(at, target);
      continue;
    }
    const from = at.built.get(step.from);
    if (from === undefined) throw new Error(`COPY --from=${step.from}: there is no such stage before`);
    const path = join(from.root, source);
    // The content of a folder is copied, not the folder.
    const isContent = statSync(path).isDirectory();
    const to = isContent || !isFolder ? target : join(target, basename(path));
    cpSync(path, to, { recursive: true, verbatimSymlinks: true });
  }
}

/** Exactly the files that .dockerignore lets through. */
function copyContext({ context, ignored }: DryRunOptions, target: string): void {
  const rules = ignoreRules(ignored);
  for (const file of filesOf({ root: context, isIgnored: (path) => rules.ignores(path) })) {
    const to = join(target, file);
    mkdirSync(dirname(to), { recursive: true });
    cpSync(join(context, file), to, { verbatimSymlinks: true });
  }
}

interface Listing {
  readonly root: string;
  readonly isIgnored: (path: string) => boolean;
}

/** Folders that nothing is let through from are not entered: they hold most of what there is. */
function filesOf(listing: Listing, folder = ''): readonly string[] {
  return readdirSync(join(listing.root, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (!entry.isDirectory()) return listing.isIgnored(path) ? [] : [path];
    const isClosed = CLOSED.has(entry.name) && listing.isIgnored(path);
    return isClosed ? [] : filesOf(listing, path);
  });
}

const CLOSED = new Set(['node_modules', 'dist', '.git', '.cache']);

function run(command: string, now: BuiltStage, at: DryRunOptions): void {
  const prefix = join(now.root, 'usr', 'local');
  const shown = command.replace(OF_THE_STAGE, `${now.root}/`).replaceAll(`${now.root}/pnpm`, at.cacheFolder);
  const result = spawnSync('sh', ['-ec', shown], {
    cwd: within(now, '.'),
    encoding: 'utf8',
    timeout: at.stepLimitMs,
    env: {
      ...now.environment,
      HOME: process.env['HOME'],
      CI: 'true',
      PATH: `${join(prefix, 'bin')}:${process.env['PATH'] ?? ''}`,
      npm_config_prefix: prefix,
      ...registryOf(process.env),
    },
  });
  if (result.status === 0) return;
  const why = result.error?.message ?? `exit ${String(result.status ?? result.signal)}`;
  throw new Error(`${shown}: ${why}\n${result.stdout}${result.stderr}`);
}

/** How this machine reaches the registry is its own business; a build machine has its own way. */
function registryOf(env: NodeJS.ProcessEnv): Record<string, string | undefined> {
  return Object.fromEntries(Object.entries(env).filter(([name]) => /^(npm_config_|https?_proxy|no_proxy)/i.test(name)));
}

function within({ root, workingFolder }: BuiltStage, path: string): string {
  return path.startsWith('/') ? join(root, path) : join(root, workingFolder, path);
}

function describe(step: Step): string {
  switch (step.kind) {
    case 'folder':
      return `WORKDIR ${step.path}`;
    case 'environment':
      return `ENV ${Object.keys(step.values).join(' ')}`;
    case 'run':
      return `RUN ${step.command}`;
    case 'copy':
      return `COPY ${step.from === null ? '' : `--from=${step.from} `}${[...step.sources, step.target].join(' ')}`;
  }
}

/** What an image must not have: sources, tests, declarations, and tools for development. */
export function leftOvers(app: string): readonly string[] {
  const ours = filesOf({ root: app, isIgnored: (path) => basename(path) === 'node_modules' });
  const files = ours.filter((file) => /\.(ts|map|tsbuildinfo)$|\.test\.js$/.test(file));
  const tools = ['typescript', 'vitest', 'eslint'].filter((name) => existsSync(join(app, 'node_modules', name)));
  return [...files, ...tools];
}
