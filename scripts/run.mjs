#!/usr/bin/env node
// Does all set-up that a command of package.json needs (install, build), quickly when there is nothing to do, then runs it.
// Plain JavaScript without dependencies, because it runs before anything is installed.
import { spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

const root = join(dirname(fileURLToPath(import.meta.url)), '..');
const PNPM = 'pnpm@10.34.9';
const NODE_MIN = [20, 19];
/** The newest line that is supported, for the unit tests. */
const NODE_ALSO = 'node@24.21.0';
const stampFile = join(root, 'node_modules', '.nightporter-install');
const [command = 'help', ...args] = process.argv.slice(2);

/** Commands that are built programs: the command line of services/cli, and the files of scripts/dist by their names. */
const PROGRAMS = new Set(['nightporter', 'demo', 'stack', 'simulate', 'catalogue', 'bench', 'image', 'trace']);
/** Commands that run a folder of proofs at full size, and what proves more in other tests, each sentence with its figures. */
const ON_THE_BROKER = ['rocketmq-faults', 'rocketmq-preflight', 'rocketmq-publisher'];
const PROOFS = new Map([
  ['test:relay', ['test/proof/relay/', 'test/e2e/services', ...ON_THE_BROKER]],
  ['test:consumer', ['test/proof/consumer/', 'test/e2e/services', 'outbox-fidelity', ...ON_THE_BROKER]],
  ['test:services', ['test/proof/services/', 'docs/examples/loyalty-worker/']],
  ['test:operate', ['test/proof/operate/', 'test/e2e/metrics', 'test/e2e/traces', 'scripts/src/alarms']],
]);
/** Commands that start a RocketMQ. */
const ON_THE_STACK = new Set(['demo', 'stack', 'bench', 'image', 'trace', 'test', ...PROOFS.keys()]);
const PREFETCH_LIMIT_MS = 15 * 60_000;

await main();

async function main() {
  assertNode();
  const jars = prefetchJars();
  if (command === 'setup') return void install();
  if (command === 'build') return void (install(), build());
  if (command === 'test') return void (install(), await test(jars));
  if (PROOFS.has(command)) return void (install(), build(), await jars, prove(PROOFS.get(command)));
  if (!PROGRAMS.has(command)) {
    const commands = ['setup', 'build', 'test', ...PROOFS.keys(), ...PROGRAMS];
    return fail(`unknown command "${command}"; one of: ${commands.join(', ')}`);
  }
  install();
  build(programProjects());
  await jars;
  // In this process, so that signals and the exit code are the program's own.
  const file =
    command === 'nightporter' ? ['services', 'cli', 'dist', 'main.js'] : ['scripts', 'dist', `${command}.js`];
  process.argv = [process.argv[0], join(root, ...file), ...args];
  await import(pathToFileURL(process.argv[1]).href);
}

function assertNode() {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
  if (major > NODE_MIN[0] || (major === NODE_MIN[0] && minor >= NODE_MIN[1])) return;
  fail(`Node ${process.versions.node} is too old: nightporter needs Node ${NODE_MIN.join('.')} or newer`);
}

/** Installs exactly what the lock file says, unless that was done already. */
function install() {
  const wanted = installStamp();
  if (existsSync(stampFile) && readFileSync(stampFile, 'utf8') === wanted) return;
  progress('installing packages (pnpm, frozen lock file)');
  run('npx', ['--yes', PNPM, 'install', '--frozen-lockfile', '--reporter=append-only', '--loglevel=warn']);
  mkdirSync(dirname(stampFile), { recursive: true });
  writeFileSync(stampFile, wanted);
}

function installStamp() {
  const hash = createHash('sha256').update(process.versions.modules);
  for (const file of ['pnpm-lock.yaml', 'pnpm-workspace.yaml', ...packageFiles()])
    hash.update(readFileSync(join(root, file)));
  return hash.digest('hex');
}

function packageFiles() {
  const nested = ['packages', 'services', join('docs', 'examples')].flatMap((folder) =>
    readdirSync(join(root, folder)).map((name) => join(folder, name)),
  );
  return ['.', 'test', 'scripts', ...nested]
    .map((folder) => join(folder, 'package.json'))
    .filter((file) => existsSync(join(root, file)));
}

/**
 * On a fresh machine Maven's downloads take longest, so they begin while packages are installed and built. This only fills
 * Maven's own repository: what starts RocketMQ asks Maven again, and tells what is missing.
 */
async function prefetchJars() {
  const cache = process.env.NIGHTPORTER_CACHE || join(root, '.cache', 'embedded');
  const isThere = existsSync(cache) && readdirSync(cache).some((name) => name.startsWith('rocketmq-jars-'));
  if (isThere || !ON_THE_STACK.has(command) || args.includes('--help') || process.env.ROCKETMQ_ENDPOINTS) return;
  progress('fetching RocketMQ’s jars with Maven meanwhile (about 100 MB, once)');
  const pom = join(root, 'packages', 'embedded', 'assets', 'rocketmq', 'pom.xml');
  const goal = 'org.apache.maven.plugins:maven-dependency-plugin:2.8:resolve';
  const child = spawn('mvn', ['-B', '-q', '-f', pom, goal], { stdio: 'ignore', timeout: PREFETCH_LIMIT_MS });
  await endWithUs(child, new Promise((resolve) => child.on('error', resolve).on('close', resolve)));
}

/** Waits for `ended`; a child that still runs when this process exits is ended with it. */
async function endWithUs(child, ended) {
  const end = () => child.kill();
  process.once('exit', end);
  const result = await ended;
  process.removeListener('exit', end);
  return result;
}

/** Without `projects`, everything that the root's tsconfig.json refers to. */
function build(projects = []) {
  progress('building (incremental)');
  run(process.execPath, [join(root, 'node_modules', 'typescript', 'bin', 'tsc'), '-b', ...projects]);
}

/** What the programs run: themselves and the services that they start. */
function programProjects() {
  return ['scripts', ...readdirSync(join(root, 'services')).map((name) => join('services', name))];
}

/** Everything that must hold, cheapest first; the test runner and its summary come last. */
async function test(jars) {
  const bin = (name) => join(root, 'node_modules', '.bin', name);
  const simulate = join(root, 'scripts', 'dist', 'simulate.js');
  const started = Date.now();
  build();
  await Promise.all([
    sequence([
      ['format', bin('prettier'), ['--check', '--log-level', 'warn', '.']],
      ['lint', bin('eslint'), ['.']],
      ['unused code', bin('knip'), []],
    ]),
    sequence([
      ['simulation of 500 histories', process.execPath, [simulate, '--seeds', '500', '--jobs', '1', '--json']],
      [
        'unit tests on Node 24',
        'npx',
        [
          '--yes',
          NODE_ALSO,
          join(root, 'node_modules', 'vitest', 'vitest.mjs'),
          'run',
          '--project',
          'unit',
          '--reporter=dot',
        ],
      ],
    ]),
  ]);
  await jars;
  progress(`checks passed after ${seconds(started)}; tests on the real stack follow`);
  const vitest = (...more) =>
    run(process.execPath, [join(root, 'node_modules', 'vitest', 'vitest.mjs'), 'run', ...more]);
  if (args.length > 0) return vitest(...args);
  vitest('--project', '!proof');
  // On servers of their own: those of the other tests are full by now, and many times slower than new ones.
  vitest('--project', 'proof');
}

/** `--json FILE` keeps the figures; everything else is vitest's, such as `-t` with part of a sentence. */
function prove(files) {
  const at = args.indexOf('--json');
  const [, file] = at < 0 ? [] : args.splice(at, 2);
  if (at >= 0 && file === undefined) return fail('--json needs the name of a file');
  if (file !== undefined) process.env.NIGHTPORTER_FIGURES = resolve(file);
  process.env.NIGHTPORTER_PROOF = 'full';
  run(process.execPath, [
    join(root, 'node_modules', 'vitest', 'vitest.mjs'),
    'run',
    ...['proof', 'integration', 'e2e', 'unit', 'examples'].flatMap((project) => ['--project', project]),
    ...files,
    ...args,
  ]);
}

async function sequence(steps) {
  for (const [name, file, stepArgs] of steps) await step(name, file, stepArgs);
}

/** Runs one check; its output is shown only when it fails, or its last line when it passes. */
async function step(name, file, stepArgs) {
  const started = Date.now();
  progress(`${name} …`);
  const child = spawn(file, stepArgs, { cwd: root, stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  child.stdout.on('data', (chunk) => (output += chunk));
  child.stderr.on('data', (chunk) => (output += chunk));
  const ended = new Promise((resolve) => {
    child.on('error', (error) => resolve(((output += String(error)), 1)));
    child.on('close', resolve);
  });
  const code = await endWithUs(child, ended);
  if (code !== 0) {
    process.stderr.write(output);
    fail(`${name} failed with exit code ${code} after ${seconds(started)}`);
  }
  const lastLine = output.trimEnd().split('\n').at(-1) ?? '';
  progress(`${name}: passed in ${seconds(started)}${lastLine.startsWith('{') ? ` ${lastLine}` : ''}`);
}

function run(file, runArgs) {
  const result = spawnSync(file, runArgs, {
    cwd: root,
    stdio: ['ignore', command.startsWith('test') ? 'inherit' : 2, 'inherit'],
  });
  if (result.error) fail(`cannot run ${file}: ${result.error.message}`);
  if (result.signal) fail(`${file} was ended by ${result.signal}`);
  if (result.status !== 0) process.exit(result.status ?? 1);
}

function seconds(since) {
  return `${((Date.now() - since) / 1000).toFixed(1)} s`;
}

/** Progress goes to standard error: standard output belongs to the command's result. */
function progress(line) {
  process.stderr.write(`nightporter: ${line}\n`);
}

function fail(message) {
  process.stderr.write(`nightporter: ${message}\n`);
  process.exit(1);
}
