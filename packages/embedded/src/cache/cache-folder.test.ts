import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { cacheFolder } from './cache-folder.js';

test('NIGHTPORTER_CACHE says where the cache is', () => {
  expect(cacheFolder({ NIGHTPORTER_CACHE: '/somewhere/else' })).toBe('/somewhere/else');
});

test('without it the cache is in the repository, out of the way of git', () => {
  const folder = cacheFolder({ NIGHTPORTER_CACHE: '' });
  expect(folder.endsWith(join('.cache', 'embedded'))).toBe(true);
  expect(existsSync(join(dirname(dirname(folder)), 'pnpm-workspace.yaml'))).toBe(true);
});
