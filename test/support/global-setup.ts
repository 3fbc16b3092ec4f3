import { join } from 'node:path';
import { startStack, type Stack } from '@nightporter/embedded';
import type { TestProject } from 'vitest/node';
import { serveControl, type ControlServer } from './control.js';
import type {} from './stack.js';

interface Shared {
  stack: Stack;
  control: ControlServer;
  socketPath: string;
}

interface Sharing {
  users: number;
  shared: Promise<Shared>;
}

/**
 * Every project that names this file loads it anew, so what they share is kept on the global object. The first one starts the
 * stack and the last one stops it.
 */
const globals = globalThis as { nightporterSharedStack?: Sharing | undefined };

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const sharing = (globals.nightporterSharedStack ??= { users: 0, shared: start() });
  sharing.users += 1;
  const { stack, socketPath } = await sharing.shared;
  project.provide('mongodbUri', stack.mongodb.uri);
  project.provide('mongodbEngine', stack.mongodb.engine);
  project.provide('rocketmqEndpoints', stack.rocketmq.endpoints);
  project.provide('rocketmqNameServer', stack.rocketmq.nameServer ?? null);
  project.provide('rocketmqMetricsPort', stack.rocketmq.metricsPort ?? null);
  project.provide('stackControl', socketPath);
  return async () => {
    sharing.users -= 1;
    if (sharing.users === 0) await stop(await sharing.shared);
  };
}

async function start(): Promise<Shared> {
  const started = Date.now();
  const stack = await startStack({ progress: note });
  const socketPath = join(stack.dataFolder, 'control.sock');
  const control = await serveControl({ socketPath, admin: stack.rocketmq });
  const engine = `${stack.mongodb.engine} ${stack.mongodb.version}`;
  note(
    `${engine} and RocketMQ ${stack.rocketmq.version} are shared by this run, started in ${((Date.now() - started) / 1000).toFixed(1)} s`,
  );
  return { stack, control, socketPath };
}

async function stop({ stack, control }: Shared): Promise<void> {
  globals.nightporterSharedStack = undefined;
  await control.close();
  await stack.stop();
}

function note(line: string): void {
  process.stderr.write(`stack: ${line}\n`);
}
