import { existsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { NightporterError } from '@nightporter/protocol';
import { fingerprint } from '../assets.js';
import { prepare } from '../cache/prepare.js';
import { takeDataFolder } from '../data-folder.js';
import type { Surroundings } from '../options.js';
import { reservePorts } from '../tools/ports.js';
import { rocketMqJvm, rocketMqPorts, type Runtime } from './launch.js';

const LIMIT_MS = 4 * 60_000;
/** The archive is written while the JVM ends, which takes its time. */
const END_LIMIT_MS = 2 * 60_000;
const ORDERLY_END = 'exit code 0';

/**
 * Adds an archive of the classes that a broker loads, which makes a start about three times faster. An archive is good for one
 * build of Java and for jars of the same paths and times, all of which its name covers. Without one, everything works more slowly.
 */
export async function withClassArchive(
  runtime: Runtime,
  { build, at }: { build: string; at: Surroundings },
): Promise<Runtime> {
  const jars = runtime.classPath.map((jar) => `${jar} ${statSync(jar).mtimeMs}`);
  const recipe = {
    name: `rocketmq-classes-${fingerprint(build, ...jars)}`,
    title: 'RocketMQ class archive',
    limitMs: LIMIT_MS,
    build: (folder: string) => write({ file: fileIn(folder), runtime, at }),
  };
  try {
    const file = fileIn(await prepare(recipe, at));
    return existsSync(file) ? { ...runtime, archiveFlags: [`-XX:SharedArchiveFile=${file}`] } : runtime;
  } catch (error) {
    at.progress(`RocketMQ class archive: not written, so starts stay slower (${(error as Error).message})`);
    return runtime;
  }
}

function fileIn(folder: string): string {
  return join(folder, 'classes.jsa');
}

/** Starts a broker once, and lets its JVM write the classes that it has loaded when it ends. */
async function write({ file, runtime, at }: { file: string; runtime: Runtime; at: Surroundings }): Promise<void> {
  at.progress('RocketMQ class archive: writing it, so that later starts are fast (once)');
  const scratch = takeDataFolder(undefined);
  const reservation = await reservePorts();
  const jvm = rocketMqJvm({
    runtime: { ...runtime, archiveFlags: [`-XX:ArchiveClassesAtExit=${file}`] },
    folder: scratch.path,
    ports: rocketMqPorts(reservation),
    at: { ...at, onUnexpectedExit: () => undefined },
  });
  try {
    await jvm.start();
    await jvm.ask({ operation: 'createTopic', name: 'warm-up', type: 'FIFO', queues: 1, writable: true });
    await jvm.ask({ operation: 'createGroup', name: 'warm-up', ordered: true, retryMaxTimes: 1, topics: ['warm-up'] });
    const end = await jvm.halt(END_LIMIT_MS);
    if (end !== ORDERLY_END)
      throw new NightporterError('NP_EMBEDDED_PREPARE_FAILED', `the JVM that writes it ended with ${end}`);
  } finally {
    await jvm.kill();
    reservation.release();
    scratch.release();
  }
  if (!existsSync(file)) at.progress('RocketMQ class archive: this Java writes none, so starts stay slower');
}
