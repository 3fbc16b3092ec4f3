/**
 * Carries out docker/Dockerfile without a container engine, and starts every service of docker/compose.yaml out of what it made: with the
 * command, the environment and the health check that are written there, on a MongoDB and a RocketMQ of its own. Standard output gets one
 * line of JSON; exit code 1 with the reason where anything fails.
 */
import { startStack, type Stack } from '@nightporter/embedded';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { DOCKER_FOLDER, readCompose, readEnvFile, type Compose, type ComposeService } from './docker/compose.js';
import { Container, freePort } from './docker/container.js';
import { readDockerfile, type Stage } from './docker/dockerfile.js';
import { buildStages, leftOvers, type BuiltStage } from './docker/dry-run.js';
import { brokerNeeds } from './docker/rocketmq-set-up.js';
import { SERVICES } from './docker/services.js';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const STEP_MS = 15 * 60_000;
const READY_MS = 180_000;

const started = performance.now();
const folder = mkdtempSync(join(tmpdir(), 'nightporter-image-'));
let isOk = true;
try {
  process.stdout.write(`${JSON.stringify({ ok: true, ...(await tryImage()) })}\n`);
} catch (error) {
  isOk = false;
  note(error instanceof Error ? error.message : String(error));
  process.stdout.write(`${JSON.stringify({ ok: false })}\n`);
} finally {
  rmSync(folder, { recursive: true, force: true });
}
process.exit(isOk ? 0 : 1);

async function tryImage() {
  const compose = readCompose(secrets());
  const stages = readDockerfile(readFileSync(`${DOCKER_FOLDER}Dockerfile`, 'utf8'));
  const built = buildStages(stages, {
    context: ROOT,
    ignored: readFileSync(join(ROOT, '.dockerignore'), 'utf8'),
    folder,
    cacheFolder: pnpmFolder(),
    stepLimitMs: STEP_MS,
    progress: note,
  });
  const image = stages.at(-1);
  const result = built.get(image?.name ?? '');
  if (image === undefined || result === undefined) throw new Error('the Dockerfile has no stage');
  const app = join(result.root, result.workingFolder);
  const left = leftOvers(app);
  if (left.length > 0)
    throw new Error(`the image would hold ${left.length} files that it does not need: ${left.slice(0, 5).join(', ')}`);
  const buildMs = Math.round(performance.now() - started);
  const { topics, groups } = brokerNeeds(compose);
  note('starting a MongoDB and a RocketMQ');
  const stack = await startStack({
    topics: topics.map((name) => ({ name })),
    groups: groups.map((name) => ({ name, topics: [...topics] })),
  });
  try {
    const services = await runServices({ compose, image, built: result, app, stack });
    return { engine: stack.mongodb.engine, megabytes: megabytes(app), services, buildMs };
  } finally {
    await stack.stop();
  }
}

interface Trial {
  readonly compose: Compose;
  readonly image: Stage;
  readonly built: BuiltStage;
  readonly app: string;
  readonly stack: Stack;
}

/** Every service at once, each until it is ready; then the command line; then SIGTERM for all. Returns their names. */
async function runServices(trial: Trial): Promise<readonly string[]> {
  const { signal } = new AbortController();
  const containers = await Promise.all(SERVICES.map(({ name }) => start(name, trial)));
  try {
    for (const container of containers) {
      await container.answers('/livez', { limitMs: READY_MS, signal });
      container.checkHealth(trial.image.healthCheck ?? []);
      await container.answers('/readyz', { limitMs: READY_MS, signal });
      note(`${container.name} is ready`);
    }
    askCommandLine(trial);
    await Promise.all(containers.map((container) => container.stop(graceMs(trial.compose.services[container.name]))));
    note('every service ended with exit code 0 on SIGTERM');
  } finally {
    for (const container of containers) container.kill();
  }
  return containers.map(({ name }) => name);
}

async function start(name: string, trial: Trial): Promise<Container> {
  const service = trial.compose.services[name];
  if (service === undefined) throw new Error(`docker/compose.yaml has no service ${name}`);
  return new Container({
    name,
    words: [...(service.entrypoint ?? trial.image.entrypoint ?? []), ...(service.command ?? [])],
    folder: trial.app,
    environment: await environmentOf(name, service, trial),
  });
}

/** As Compose would set it, but for what is the address of something in its network, or a volume. */
async function environmentOf(
  name: string,
  service: ComposeService,
  { built, stack }: Trial,
): Promise<Record<string, string>> {
  const given = service.environment ?? {};
  const folders = Object.entries(given).filter(([, value]) => value.startsWith('/var/lib/'));
  return {
    ...built.environment,
    ...given,
    ...Object.fromEntries(folders.map(([key, value]) => [key, join(built.root, value)])),
    // Nobody takes traces here.
    OTEL_EXPORTER_OTLP_ENDPOINT: '',
    HOST: '127.0.0.1',
    PORT: String(name === 'cli' ? 0 : await freePort()),
    MONGODB_URI: stack.mongodb.uri,
    ...(given['ROCKETMQ_ENDPOINTS'] === undefined ? {} : { ROCKETMQ_ENDPOINTS: stack.rocketmq.endpoints }),
  };
}

function askCommandLine({ app, compose, stack }: Trial): void {
  const { entrypoint = [] } = compose.services['cli'] ?? {};
  const env = { MONGODB_URI: stack.mongodb.uri };
  const answer = spawnSync(process.execPath, [...entrypoint.slice(1), 'status', '--json'], {
    cwd: app,
    env,
    encoding: 'utf8',
    timeout: READY_MS,
  });
  // 1 is an answer, too: something stands that an operator should see.
  if (answer.status !== 0 && answer.status !== 1)
    throw new Error(`the command line failed: ${answer.stdout}${answer.stderr}`);
  JSON.parse(answer.stdout);
  note('the command line answers');
}

/** `15s` */
function graceMs(service: ComposeService | undefined): number {
  return Number.parseInt(service?.stop_grace_period ?? '10s', 10) * 1_000;
}

/** The secrets of an env file that docker/make-env.mjs writes. */
function secrets(): Readonly<Record<string, string>> {
  const file = join(folder, 'env');
  const made = spawnSync(process.execPath, [`${DOCKER_FOLDER}make-env.mjs`, file], { encoding: 'utf8' });
  if (made.status !== 0) throw new Error(`docker/make-env.mjs failed: ${made.stderr}`);
  return readEnvFile(file);
}

/** The folder whose `store` is the one that this repository was installed from, so that an installation fetches nothing again. */
function pnpmFolder(): string {
  const { storeDir } = JSON.parse(readFileSync(join(ROOT, 'node_modules', '.modules.yaml'), 'utf8')) as {
    storeDir: string;
  };
  // …/store/v10
  return dirname(dirname(storeDir));
}

function megabytes(path: string): number {
  const { stdout } = spawnSync('du', ['-sm', path], { encoding: 'utf8' });
  return Number.parseInt(stdout, 10);
}

function note(line: string): void {
  process.stderr.write(`image: ${line}\n`);
}
