import { mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { assetPath, assetText, fingerprint } from '../assets.js';
import { prepare } from '../cache/prepare.js';
import type { Surroundings } from '../options.js';
import { findJava, findJavaCompiler, type Java } from '../tools/java.js';
import { findMaven } from '../tools/maven.js';
import { runTool } from '../tools/run-tool.js';
import { withClassArchive } from './class-archive.js';
import type { Runtime } from './launch.js';

const FETCH_LIMIT_MS = 15 * 60_000;
const COMPILE_LIMIT_MS = 2 * 60_000;
const PROGRESS_EVERY_MS = 3_000;
const DEPENDENCY_PLUGIN = 'org.apache.maven.plugins:maven-dependency-plugin:2.8';
const HIGH_AVAILABILITY_SERVICE = 'META-INF/service/org.apache.rocketmq.store.ha.HAService';

export const ROCKETMQ_VERSION = readVersion(assetText('rocketmq', 'pom.xml'));

/**
 * Everything that a broker starts from, out of the cache where it is there: RocketMQ's jars (Maven), our launcher (javac), and an
 * archive of the loaded classes, which makes a start about three times faster.
 */
export async function prepareRocketMq(at: Surroundings): Promise<Runtime> {
  const java = await findJava(at.environment);
  const pom = assetText('rocketmq', 'pom.xml');
  const jars = await prepare(
    {
      name: `rocketmq-jars-${fingerprint(pom)}`,
      title: `RocketMQ ${ROCKETMQ_VERSION}`,
      limitMs: FETCH_LIMIT_MS,
      build: (folder) => fetchJars(folder, at),
    },
    at,
  );
  const sources = sourceFiles();
  const launcherKey = fingerprint(pom, ...sources.map((name) => assetText('rocketmq', 'src', name)));
  const launcher = await prepare(
    {
      name: `rocketmq-launcher-${launcherKey}`,
      title: 'RocketMQ launcher',
      limitMs: COMPILE_LIMIT_MS,
      build: (folder) => compile({ folder, jars, java, at }),
    },
    at,
  );
  const classPath = [join(launcher, 'launcher.jar'), ...jarsIn(jars)];
  return withClassArchive({ java: java.command, classPath, archiveFlags: [] }, { build: java.build, at });
}

export function readVersion(pom: string): string {
  const version = /<rocketmq\.version>([^<]+)</.exec(pom)?.[1];
  if (version === undefined) throw new Error('pom.xml names no rocketmq.version');
  return version;
}

async function fetchJars(folder: string, { environment, progress }: Surroundings): Promise<void> {
  const maven = findMaven(environment);
  const started = Date.now();
  let files = 0;
  let toldAt = started;
  progress(`RocketMQ ${ROCKETMQ_VERSION}: fetching its jars with Maven (about 100 MB, once)`);
  await runTool({
    command: maven,
    arguments: [
      '-B',
      '-f',
      assetPath('rocketmq', 'pom.xml'),
      `${DEPENDENCY_PLUGIN}:copy-dependencies`,
      `-DoutputDirectory=${folder}`,
    ],
    environment,
    folder,
    limitMs: FETCH_LIMIT_MS,
    onLine: (line) => {
      if (line.includes('Downloaded from')) files += 1;
      if (Date.now() - toldAt < PROGRESS_EVERY_MS) return;
      toldAt = Date.now();
      progress(`RocketMQ ${ROCKETMQ_VERSION}: ${files} files fetched in ${Math.round((toldAt - started) / 1000)} s`);
    },
  });
  progress(
    `RocketMQ ${ROCKETMQ_VERSION}: ${jarsIn(folder).length} jars are there after ${Math.round((Date.now() - started) / 1000)} s`,
  );
}

/** Classes must lie in a jar to be archived. */
async function compile({
  folder,
  jars,
  java,
  at,
}: {
  folder: string;
  jars: string;
  java: Java;
  at: Surroundings;
}): Promise<void> {
  const { javac, jar } = findJavaCompiler(java, at.environment);
  const classes = join(folder, 'classes');
  at.progress('RocketMQ launcher: compiling it (once)');
  mkdirSync(join(classes, 'META-INF', 'service'), { recursive: true });
  writeFileSync(join(classes, HIGH_AVAILABILITY_SERVICE), 'nightporter.rocketmq.NoReplication');
  const run = { environment: at.environment, limitMs: COMPILE_LIMIT_MS };
  const sources = sourceFiles().map((name) => assetPath('rocketmq', 'src', name));
  await runTool({
    ...run,
    command: javac,
    arguments: ['--release', '17', '-proc:none', '-d', classes, '-cp', jarsIn(jars).join(':'), ...sources],
  });
  await runTool({
    ...run,
    command: jar,
    arguments: ['--create', '--file', join(folder, 'launcher.jar'), '-C', classes, '.'],
  });
  rmSync(classes, { recursive: true });
}

function jarsIn(folder: string): string[] {
  const names = readdirSync(folder).filter((name) => name.endsWith('.jar'));
  return names.sort().map((name) => join(folder, name));
}

function sourceFiles(): string[] {
  return readdirSync(assetPath('rocketmq', 'src', 'nightporter', 'rocketmq'))
    .sort()
    .map((name) => join('nightporter', 'rocketmq', name));
}
