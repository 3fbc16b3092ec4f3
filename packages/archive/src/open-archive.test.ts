import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { openArchive } from './open-archive.js';

vi.mock('@nightporter/archive-s3', () => {
  throw new Error('it is not installed');
});

let folder: string | null = null;
afterEach(async () => {
  if (folder !== null) await rm(folder, { recursive: true, force: true });
});

describe('opening an archive, where the package for S3 is not installed', () => {
  it('opens a folder', async () => {
    folder = await mkdtemp(join(tmpdir(), 'nightporter-open-'));
    const files = await openArchive(folder);
    await files.write('a/1', Buffer.from('one'));
    expect(await files.read('a/1')).toEqual(Buffer.from('one'));
  });

  it('says for S3 which package is missing', async () => {
    await expect(openArchive('s3://archive/orders')).rejects.toMatchObject({
      code: 'NP_CONFIG_INVALID',
      message: expect.stringContaining('@nightporter/archive-s3') as string,
    });
  });

  it.each(['gs://archive', 's3:/archive', 's3://archive?region=here'])(
    'refuses %j with what it accepts',
    async (bad) => {
      await expect(openArchive(bad)).rejects.toMatchObject({
        code: 'NP_CONFIG_INVALID',
        message: expect.stringMatching(/accepted: the path of a folder, or s3:\/\/bucket\/prefix/) as string,
      });
    },
  );
});
