import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { surroundings } from '../options.js';
import { findMongod, parseMongodVersion } from './find-mongod.js';
import { mongodArguments, replicaSetUri } from './mongod-arguments.js';
import { identify } from './replica-set.js';

function parameters(flags: string[]): string[] {
  return flags.filter((_, index) => flags[index - 1] === '--setParameter');
}

test('a real mongod is given nothing that it would refuse', () => {
  const flags = mongodArguments(
    { oplogMaxEntries: 500, syncOnCommit: false, parameters: { ttlMonitorSleepSecs: '1' } },
    { isSecantus: false },
  );
  expect(parameters(flags)).toEqual(['enableTestCommands=1', 'periodicNoopIntervalSecs=10', 'ttlMonitorSleepSecs=1']);
  expect(flags.slice(0, 2)).toEqual(['--replSet', 'nightporter']);
});

test('SecantusDB syncs each commit unless told otherwise, and ends with its owner', () => {
  expect(parameters(mongodArguments({}, { isSecantus: true }))).toEqual(
    expect.arrayContaining(['exitOnStdinEof=true', 'syncOnCommit=true', 'oplogMaxEntries=100000']),
  );
  const flags = mongodArguments(
    { oplogMaxEntries: 500, syncOnCommit: false, parameters: { periodicNoopIntervalSecs: '1' } },
    { isSecantus: true },
  );
  expect(parameters(flags)).toEqual(
    expect.arrayContaining(['syncOnCommit=false', 'oplogMaxEntries=500', 'periodicNoopIntervalSecs=1']),
  );
});

test('the address is on the loopback interface and names the replica set', () => {
  expect(replicaSetUri(20_000)).toBe('mongodb://127.0.0.1:20000/?replicaSet=nightporter');
});

test('the engine is told by what the server says of itself', () => {
  expect(identify({ version: '8.2.11', secantusVersion: '0.7.0b3' })).toEqual({
    engine: 'SecantusDB',
    version: '0.7.0b3',
  });
  expect(identify({ version: '8.0.4' })).toEqual({ engine: 'MongoDB', version: '8.0.4' });
});

test('the version of a mongod is read from what it prints', () => {
  expect(parseMongodVersion('db version v8.2.6\nBuild Info: {\n')).toBe('8.2.6');
  expect(parseMongodVersion('command not found')).toBeUndefined();
});

function folderWith(script: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'nightporter-mongod-'));
  onTestFinished(() => {
    rmSync(folder, { recursive: true, force: true });
  });
  writeFileSync(join(folder, 'mongod'), `#!/bin/sh\n${script}\n`);
  chmodSync(join(folder, 'mongod'), 0o755);
  return folder;
}

test('a mongod on the PATH is used, unless another one is named', async () => {
  const PATH = folderWith('echo db version v7.0.1');
  const named = join(folderWith('echo db version v8.0.9'), 'mongod');
  expect(await findMongod(surroundings({ environment: { PATH } }))).toEqual({
    binary: join(PATH, 'mongod'),
    version: '7.0.1',
  });
  const environment = { PATH, MONGOMS_SYSTEM_BINARY: named };
  expect(await findMongod(surroundings({ environment }))).toEqual({ binary: named, version: '8.0.9' });
});

test('a mongod that is named and does not run is an error, and no reason to take another engine', async () => {
  const environment = { PATH: folderWith('echo db version v7.0.1'), MONGOMS_SYSTEM_BINARY: '/nowhere/mongod' };
  await expect(findMongod(surroundings({ environment }))).rejects.toThrow(
    /MONGOMS_SYSTEM_BINARY is \/nowhere\/mongod, which is no mongod/,
  );
});

/** mongodb-memory-server looks into the environment of this process: whatever was downloaded here before must not be found. */
function pretendNothingWasDownloaded(): void {
  vi.stubEnv('MONGOMS_VERSION', '0.0.1');
  vi.stubEnv('MONGOMS_DOWNLOAD_DIR', folderWith(''));
  onTestFinished(() => {
    vi.unstubAllEnvs();
  });
}

test('without network it is soon known that nothing can be downloaded', async () => {
  pretendNothingWasDownloaded();
  const started = Date.now();
  const environment = { PATH: '', MONGOMS_DOWNLOAD_MIRROR: 'http://127.0.0.1:1' };
  expect(await findMongod(surroundings({ environment }))).toBeUndefined();
  expect(Date.now() - started).toBeLessThan(3_000);
});

test('a mongod that cannot be downloaded after all is told, and is no error', async () => {
  pretendNothingWasDownloaded();
  const told: string[] = [];
  const reachable = createServer((socket) => socket.destroy());
  await new Promise<void>((resolve) => reachable.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void reachable.close());
  const mirror = `http://127.0.0.1:${(reachable.address() as AddressInfo).port}`;
  const environment = {
    ...process.env,
    PATH: '',
    MONGOMS_DOWNLOAD_MIRROR: mirror,
    MONGOMS_USE_HTTP: '1',
    MONGOMS_MAX_RETRIES: '0',
  };
  expect(await findMongod(surroundings({ environment, progress: (line) => told.push(line) }))).toBeUndefined();
  expect(told.at(-1)).toMatch(/no mongod could be downloaded/);
});
