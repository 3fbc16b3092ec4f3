import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createArchiveFolder } from './archive-folder.js';

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'nightporter-folder-'));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

describe('an archive folder', () => {
  const content = Buffer.from('é ✓');

  it('gives back what was written, and nothing of what was not', async () => {
    const files = createArchiveFolder(join(folder, 'deep', 'down'));
    await files.write('orders/2026/11/30/1.gz', content);
    expect(await files.read('orders/2026/11/30/1.gz')).toEqual(content);
    expect(await files.read('orders/2026/11/30/2.gz')).toBeNull();
    expect(await readdir(join(folder, 'deep', 'down', 'orders', '2026', '11', '30'))).toEqual(['1.gz']);
  });

  it('does not find a write that was cut off, and removes what is left of it', async () => {
    const files = createArchiveFolder(folder);
    await writeFile(join(folder, '1.gz.partial'), 'hal');
    expect(await files.read('1.gz')).toBeNull();
    await files.remove('1.gz');
    await files.remove('1.gz');
    expect(await readdir(folder)).toEqual([]);
  });

  it.each(['../1.gz', '/1.gz', 'a/../b', 'a//b', '.hidden', '', '1.gz.partial'])(
    'refuses the name %j, which may lead out of it',
    async (name) => {
      await expect(createArchiveFolder(folder).read(name)).rejects.toMatchObject({ code: 'NP_ARCHIVE_FAILED' });
    },
  );

  it('says which file could not be written, and why', async () => {
    await writeFile(join(folder, 'orders'), '');
    await expect(createArchiveFolder(folder).write('orders/1.gz', content)).rejects.toThrow(
      /writing orders\/1\.gz in the archive: E/,
    );
  });
});
