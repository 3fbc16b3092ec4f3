import { realpathSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { isNightporterError, NightporterError } from '@nightporter/protocol';
import { findOnPath, isExecutable } from './find-on-path.js';
import { runTool } from './run-tool.js';

const JAVA_MAJOR_MIN = 17;
const PROBE_LIMIT_MS = 15_000;
const HOW =
  'Install a JDK of version 17 or newer (Debian, Ubuntu: apt-get install openjdk-17-jdk-headless; macOS: brew install openjdk) ' +
  'and put it on the PATH or into JAVA_HOME, or set ROCKETMQ_ENDPOINTS to a RocketMQ proxy that runs already.';

export interface Java {
  command: string;
  /** All that `java -version` says: a class archive is good for exactly one build. */
  build: string;
}

/** The Java in JAVA_HOME, else on the PATH, whichever is new enough first. */
export async function findJava(environment: NodeJS.ProcessEnv): Promise<Java> {
  const refused: string[] = [];
  for (const command of javaCandidates(environment)) {
    const build = await versionOf(command, environment);
    const major = parseJavaMajor(build);
    if (major !== undefined && major >= JAVA_MAJOR_MIN) return { command, build };
    refused.push(major === undefined ? `${command} does not run` : `${command} is version ${major}`);
  }
  const found = refused.length === 0 ? 'there is no java on the PATH or in JAVA_HOME' : refused.join(' and ');
  throw new NightporterError(
    'NP_EMBEDDED_TOOL_MISSING',
    `RocketMQ needs Java ${JAVA_MAJOR_MIN} or newer, but ${found}. ${HOW}`,
  );
}

/** The compiler and the archiver of the same JDK, else those on the PATH. */
export function findJavaCompiler(java: Java, environment: NodeJS.ProcessEnv): { javac: string; jar: string } {
  const homes = [dirname(java.command), dirname(realpathSync(java.command))];
  const find = (name: string) =>
    homes.map((home) => join(home, name)).find(isExecutable) ?? findOnPath(name, environment);
  const [javac, jar] = [find('javac'), find('jar')];
  if (javac !== undefined && jar !== undefined) return { javac, jar };
  throw new NightporterError(
    'NP_EMBEDDED_TOOL_MISSING',
    `RocketMQ's launcher must be compiled once, but ${java.command} comes without javac and jar: it is a runtime, not a JDK. ${HOW}`,
  );
}

/** `version "17.0.15"` is 17, `version "1.8.0_392"` is 8, `version "25"` is 25. */
export function parseJavaMajor(versionOutput: string): number | undefined {
  const match = /version "(?:1\.)?(\d+)/.exec(versionOutput);
  return match?.[1] === undefined ? undefined : Number(match[1]);
}

async function versionOf(command: string, environment: NodeJS.ProcessEnv): Promise<string> {
  try {
    return await runTool({ command, arguments: ['-version'], environment, limitMs: PROBE_LIMIT_MS });
  } catch (error) {
    if (!isNightporterError(error)) throw error;
    return '';
  }
}

function javaCandidates(environment: NodeJS.ProcessEnv): string[] {
  const home = environment['JAVA_HOME'];
  const fromHome = home === undefined || home === '' ? undefined : join(home, 'bin', 'java');
  const fromPath = findOnPath('java', environment);
  return [fromHome, fromPath].filter((command) => command !== undefined).filter(isExecutable);
}
