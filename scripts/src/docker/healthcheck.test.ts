import { createHealthServer } from '@nightporter/runtime';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { expect, it, onTestFinished } from 'vitest';
import { DOCKER_FOLDER } from './compose.js';

async function check(environment: Readonly<Record<string, string>>): Promise<number | null> {
  const child = spawn(process.execPath, [`${DOCKER_FOLDER}healthcheck.mjs`], { env: environment, stdio: 'ignore' });
  const [code] = (await once(child, 'exit')) as [number | null];
  return code;
}

it('The health check of the image passes while the service lives, whether it is ready or not', async () => {
  const server = await createHealthServer({
    host: '127.0.0.1',
    port: 0,
    checks: { work: () => 'waits for something' },
  });
  onTestFinished(() => server.close());
  expect(await check({ PORT: String(server.port) })).toBe(0);
});

it('The health check of the image fails where nobody answers, and where no port is named', async () => {
  const server = await createHealthServer({ host: '127.0.0.1', port: 0, checks: {} });
  await server.close();
  expect(await check({ PORT: String(server.port) })).toBe(1);
  expect(await check({})).toBe(1);
});
