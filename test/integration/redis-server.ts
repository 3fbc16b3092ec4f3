import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { untilGiven } from './rocketmq-samples.js';

export interface RedisServer {
  readonly url: string;
  kill(): Promise<void>;
}

/** Why there is no Redis here; null where there is one. */
export function missingRedis(): string | null {
  const { status } = spawnSync('redis-server', ['--version'], { stdio: 'ignore' });
  return status === 0 ? null : 'there is no redis-server on the PATH';
}

/** A Redis on the loopback interface that keeps nothing. */
export async function startRedis(): Promise<RedisServer> {
  const port = await freePort();
  const folder = mkdtempSync(join(tmpdir(), 'nightporter-redis-'));
  const settings = ['--port', String(port), '--bind', '127.0.0.1', '--dir', folder, '--save', '', '--appendonly', 'no'];
  const child = spawn('redis-server', settings, { stdio: ['ignore', 'pipe', 'ignore'] });
  let output = '';
  child.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()));
  const isReady = () => Promise.resolve(output.includes('Ready to accept connections') ? true : null);
  await untilGiven(isReady, { limitMs: 10_000, what: 'redis-server is ready' });
  return {
    url: `redis://127.0.0.1:${port}`,
    async kill() {
      await end(child);
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, 'exit');
  child.kill('SIGKILL');
  await ended;
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}
