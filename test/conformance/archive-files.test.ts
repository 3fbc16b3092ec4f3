import { openArchive } from '@nightporter/archive';
import { archiveFilesConformance } from '@nightporter/testing/conformance';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, vi } from 'vitest';
import { startS3Store, type S3Store } from '../support/s3-store.js';
import { uniqueName } from '../support/stack.js';

let root: string;
let store: S3Store;

beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'nightporter-places-'));
  await writeFile(join(root, 'a-file'), '');
  store = await startS3Store();
  for (const [name, value] of Object.entries(store.env)) vi.stubEnv(name, value);
});
afterAll(async () => {
  vi.unstubAllEnvs();
  await store.close();
  await rm(root, { recursive: true, force: true });
});

archiveFilesConformance('A folder', async () => {
  const folder = join(await mkdtemp(join(root, 'place-')), 'deep', 'down');
  return { open: () => openArchive(folder), openUnreachable: () => openArchive(join(root, 'a-file')) };
});

archiveFilesConformance('S3', () => {
  const location = store.location(uniqueName('place'));
  return Promise.resolve({
    open: () => openArchive(location),
    openUnreachable: () => openArchive('s3://not-there/prefix?path-style'),
  });
});
