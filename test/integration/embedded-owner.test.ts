import { existsSync } from 'node:fs';
import { once } from 'node:events';
import { pathToFileURL } from 'node:url';
import { join } from 'node:path';
import { beforeAll, expect, onTestFinished, test } from 'vitest';
import { build, descendants, expectGone, isRunning, repository, startNode } from './embedded-processes.js';

/** mongodb-memory-server looks every 2 s whether its parent is there. */
const ORPHAN_LIMIT_MS = 10_000;
const BUILD_LIMIT_MS = 120_000;
const SERVERS = 2;

/** Never the addresses of the environment, and what is built. */
const environmentFlags = `{ ...process.env, MONGODB_URI: undefined, ROCKETMQ_ENDPOINTS: undefined }`;
const embedded = pathToFileURL(join(repository, 'packages/embedded/dist/index.js')).href;

beforeAll(async () => {
  await build('packages/embedded');
  await build('scripts');
}, BUILD_LIMIT_MS);

async function startOwner(script: string): Promise<{ pid: number; line: string; exit: Promise<unknown> }> {
  const { child, line } = await startNode(['--input-type=module', '--eval', script]);
  onTestFinished(() => void child.kill('SIGKILL'));
  return { pid: child.pid!, line, exit: once(child, 'exit') };
}

test.each([
  ['is killed with SIGKILL', 'await new Promise(() => setInterval(() => undefined, 1000));'],
  ['exits without stopping it', 'process.stdin.destroy(); setTimeout(() => process.exit(0), 1000);'],
  ['throws', "setTimeout(() => { throw new Error('the owner fails'); }, 1000);"],
])('no server outlives an owner that %s', async (how, ending) => {
  const owner = await startOwner(`
    import { startStack } from ${JSON.stringify(embedded)};
    await startStack({ environment: ${environmentFlags} });
    process.stdout.write('ready\\n');
    ${ending}
  `);
  const servers = descendants(owner.pid);
  expect(servers.length).toBeGreaterThanOrEqual(SERVERS);
  if (how.includes('SIGKILL')) process.kill(owner.pid, 'SIGKILL');
  await owner.exit;
  await expectGone(servers, ORPHAN_LIMIT_MS);
});

test.each(['SIGTERM', 'SIGINT'] as const)(
  'the stack command prints its addresses as one line of JSON and ends cleanly on %s',
  async (signal) => {
    const { child, line } = await startNode([
      'scripts/dist/stack.js',
      '--topics',
      'orders:4,stock',
      '--groups',
      'readers:orders',
    ]);
    onTestFinished(() => void child.kill('SIGKILL'));
    const addresses = JSON.parse(line) as {
      mongodbUri: string;
      engine: string;
      rocketmqEndpoints: string;
      dataFolder: string;
    };
    expect(addresses).toMatchObject({
      mongodbUri: expect.stringMatching(/^mongodb:/),
      rocketmqEndpoints: expect.stringMatching(/:\d+$/),
    });
    const servers = descendants(child.pid!);
    const exit = once(child, 'exit');
    child.kill(signal);
    expect(await exit).toEqual([0, null]);
    expect(servers.filter(isRunning)).toEqual([]);
    expect(existsSync(addresses.dataFolder)).toBe(false);
  },
);

test('the stack command refuses flags that it cannot read', async () => {
  await expect(startNode(['scripts/dist/stack.js', '--topics', 'orders:none'])).rejects.toThrow(
    /"none" is not a whole number from 1/,
  );
});
