import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { takeDataFolder } from './data-folder.js';

const deadProcess = spawnSync(process.execPath, ['--version']).pid;

function abandonedFolder(owner: { pid: number; host: string }): string {
  const path = mkdtempSync(join(tmpdir(), 'nightporter-stack-'));
  onTestFinished(() => {
    rmSync(path, { recursive: true, force: true });
  });
  mkdirSync(join(path, 'mongodb'));
  writeFileSync(join(path, 'owner.json'), JSON.stringify(owner));
  return path;
}

test('a throwaway folder is removed when it is given up', () => {
  const folder = takeDataFolder(undefined);
  expect(folder.throwaway).toBe(true);
  writeFileSync(join(folder.path, 'data'), 'x');
  folder.release();
  expect(existsSync(folder.path)).toBe(false);
});

test('throwaway folders of processes that are gone are removed, and those of living or distant processes are not', () => {
  const gone = abandonedFolder({ pid: deadProcess, host: hostname() });
  const living = abandonedFolder({ pid: process.pid, host: hostname() });
  const distant = abandonedFolder({ pid: deadProcess, host: 'elsewhere' });
  takeDataFolder(undefined).release();
  expect([gone, living, distant].map(existsSync)).toEqual([false, true, true]);
});

test('a given folder is kept, belongs to one process at a time, and can be taken after its owner died', () => {
  const path = join(abandonedFolder({ pid: deadProcess, host: hostname() }), 'given');
  const folder = takeDataFolder(path);
  expect(() => takeDataFolder(path)).toThrow(new RegExp(`${path} is in use by process ${process.pid}`));
  folder.release();
  expect(existsSync(path)).toBe(true);
  writeFileSync(join(path, 'owner.json'), JSON.stringify({ pid: deadProcess, host: hostname() }));
  takeDataFolder(path).release();
});
