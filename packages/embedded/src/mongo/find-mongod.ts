import { spawnSync } from 'node:child_process';
import { lookup } from 'node:dns/promises';
import { DryMongoBinary } from 'mongodb-memory-server-core';
import { isNightporterError, NightporterError } from '@nightporter/protocol';
import { assetPath } from '../assets.js';
import type { Surroundings } from '../options.js';
import { assertReachable } from '../external-server.js';
import { findOnPath } from '../tools/find-on-path.js';
import { runTool } from '../tools/run-tool.js';

const BINARY_VARIABLE = 'MONGOMS_SYSTEM_BINARY';
const DOWNLOAD_LIMIT_MS = 120_000;
const LOOKUP_LIMIT_MS = 1_500;
const VERSION_LIMIT_MS = 10_000;
/** A process of its own: the download prints to standard output and cannot be given a time limit. The last line is the path. */
const DOWNLOAD_SCRIPT = `
import { MongoBinary } from 'mongodb-memory-server-core';
console.log(await MongoBinary.getPath());
`;
const DEFAULT_MIRROR = 'https://fastdl.mongodb.org';

export interface FoundMongod {
  binary: string;
  version: string;
}

/**
 * A real mongod: MONGOMS_SYSTEM_BINARY, one on the PATH, one that mongodb-memory-server has downloaded before, or one that it can
 * download now within two minutes. Undefined when there is none; where the network is away this is known within 3 s.
 */
export async function findMongod(at: Surroundings): Promise<FoundMongod | undefined> {
  const named = at.environment[BINARY_VARIABLE];
  if (named !== undefined && named !== '') return namedMongod(named);
  const binary = findOnPath('mongod', at.environment) ?? (await findDownloaded()) ?? (await download(at));
  if (binary === undefined) return undefined;
  const version = versionOf(binary);
  if (version !== undefined) return { binary, version };
  at.progress(`MongoDB: ${binary} does not answer to --version, so it is not used`);
  return undefined;
}

/** Whoever names a mongod wants that one, and no other engine in its place. */
function namedMongod(binary: string): FoundMongod {
  const version = versionOf(binary);
  if (version !== undefined) return { binary, version };
  throw new NightporterError(
    'NP_EMBEDDED_START_FAILED',
    `${BINARY_VARIABLE} is ${binary}, which is no mongod that answers to --version`,
  );
}

/** `db version v8.2.6` is 8.2.6. */
export function parseMongodVersion(output: string): string | undefined {
  return /db version v(\d+\.\d+\.\d+)/.exec(output)?.[1];
}

function versionOf(binary: string): string | undefined {
  const result = spawnSync(binary, ['--version'], { encoding: 'utf8', timeout: VERSION_LIMIT_MS });
  return result.error === undefined ? parseMongodVersion(result.stdout) : undefined;
}

async function findDownloaded(): Promise<string | undefined> {
  return DryMongoBinary.locateBinary(DryMongoBinary.getEnsuredOptions());
}

async function download({ environment, progress }: Surroundings): Promise<string | undefined> {
  if (/^(0|false|no|off)$/i.test(environment['MONGOMS_RUNTIME_DOWNLOAD'] ?? '')) return undefined;
  const host = new URL(environment['MONGOMS_DOWNLOAD_URL'] ?? environment['MONGOMS_DOWNLOAD_MIRROR'] ?? DEFAULT_MIRROR);
  if (!(await isOnline(host))) return undefined;
  progress(
    `MongoDB: downloading mongod (given up after ${DOWNLOAD_LIMIT_MS / 1000} s, and continued at the next start)`,
  );
  try {
    const output = await runTool({
      command: process.execPath,
      arguments: ['--input-type=module', '--eval', DOWNLOAD_SCRIPT],
      folder: assetPath(),
      environment,
      limitMs: DOWNLOAD_LIMIT_MS,
      onLine: progress,
    });
    return output.trimEnd().split('\n').at(-1);
  } catch (error) {
    if (!isNightporterError(error)) throw error;
    progress(`MongoDB: no mongod could be downloaded (${error.message.split('\n')[0] ?? ''})`);
    return undefined;
  }
}

/** mongodb-memory-server itself needs 7 s to find out that there is no network. */
async function isOnline(url: URL): Promise<boolean> {
  const port = url.port === '' ? (url.protocol === 'http:' ? 80 : 443) : Number(url.port);
  try {
    await withinLimit(lookup(url.hostname));
    await withinLimit(assertReachable({ variable: 'the download host', endpoints: `${url.hostname}:${port}` }));
    return true;
  } catch {
    return false;
  }
}

async function withinLimit(work: Promise<unknown>): Promise<void> {
  await Promise.race([
    work,
    new Promise((_resolve, reject) => {
      setTimeout(() => {
        reject(new Error(`no answer within ${LOOKUP_LIMIT_MS} ms`));
      }, LOOKUP_LIMIT_MS).unref();
    }),
  ]);
}
