import { readFileSync, readdirSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { expect, it } from 'vitest';

const sources = readdirSync(import.meta.dirname, { recursive: true, encoding: 'utf8' }).filter(
  (file) => file.endsWith('.ts') && !file.endsWith('.test.ts'),
);

it('Only the folder client knows the RocketMQ client and gRPC', () => {
  expect(sources.length).toBeGreaterThan(10);
  const knowing = sources.filter((file) =>
    /from '(rocketmq-client-nodejs|@grpc)/.test(readFileSync(join(import.meta.dirname, file), 'utf8')),
  );
  expect(knowing.filter((file) => !file.startsWith('client/'))).toEqual([]);
});

it('The client is the version whose inner workings this package relies on', () => {
  const require = createRequire(import.meta.url);
  const { version } = require('rocketmq-client-nodejs/package.json') as { version: string };
  expect(version).toBe('1.0.8');
});
