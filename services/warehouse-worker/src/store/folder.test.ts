import { mkdtemp, open, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createWarehouseFolder, type WarehouseFolder } from './folder.js';

let path: string;
let folder: WarehouseFolder;
beforeAll(async () => {
  path = await mkdtemp(join(tmpdir(), 'nightporter-folder-'));
  folder = createWarehouseFolder(path);
});
afterAll(() => rm(path, { recursive: true, force: true }));

describe('the folder of a warehouse', () => {
  it('replaces a file in one step: whoever has opened the old one reads all of it', async () => {
    await folder.write('manifest.json', Buffer.from('the old one'));
    const before = await folder.versionOf('manifest.json');
    const reader = await open(join(path, 'manifest.json'));
    await folder.write('manifest.json', Buffer.from('new'));
    expect((await reader.readFile()).toString()).toBe('the old one');
    await reader.close();
    expect(Buffer.from((await folder.read('manifest.json')) ?? []).toString()).toBe('new');
    expect(await folder.versionOf('manifest.json')).not.toBe(before);
    expect(await folder.list()).toEqual(['manifest.json']);
  });

  it('has the one or the other whole where a file is written twice at once, and nothing beside it', async () => {
    const contents = ['a', 'b', 'c', 'd'].map((letter) => letter.repeat(1_000_000));
    const versions = await Promise.all(contents.map((content) => folder.write('manifest.json', Buffer.from(content))));
    const there = Buffer.from((await folder.read('manifest.json')) ?? []).toString();
    expect(contents).toContain(there);
    // Each is told the version of its own, also where another has replaced it meanwhile.
    expect(new Set(versions).size).toBe(4);
    expect(versions[contents.indexOf(there)]).toBe(await folder.versionOf('manifest.json'));
    expect(await folder.list()).toEqual(['manifest.json']);
  });

  it('leaves nothing of a write that fails', async () => {
    await folder.write('taken/file.parquet', Buffer.from('x'));
    await expect(folder.write('taken', Buffer.from('y'))).rejects.toMatchObject({ code: 'NP_WAREHOUSE_FAILED' });
    expect((await folder.list()).toSorted()).toEqual(['manifest.json', 'taken/file.parquet']);
    await folder.remove(['taken/file.parquet']);
  });

  it('lists what is there by its path, and removes it, or what is not there', async () => {
    await folder.write('events/day=2026-11-30/1-a.parquet', Buffer.from('x'));
    expect(await folder.list()).toContain('events/day=2026-11-30/1-a.parquet');
    await folder.remove(['events/day=2026-11-30/1-a.parquet', 'events/other.parquet']);
    expect(await folder.read('events/day=2026-11-30/1-a.parquet')).toBeNull();
  });

  it.each(['../elsewhere', '/etc/passwd', 'a/../../b', ''])('refuses the name %j', async (name) => {
    await expect(folder.write(name, Buffer.from('x'))).rejects.toMatchObject({ code: 'NP_WAREHOUSE_FAILED' });
  });
});
