import { createS3Archive } from '@nightporter/archive-s3';
import type { ArchiveFiles } from '@nightporter/protocol';
import { inspect } from 'node:util';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { until } from '../e2e/programs.js';
import { startS3Store, type Fate, type S3Store } from '../support/s3-store.js';

let store: S3Store;
beforeEach(async () => {
  store = await startS3Store();
  for (const [name, value] of Object.entries(store.env)) vi.stubEnv(name, value);
});
afterEach(async () => {
  vi.unstubAllEnvs();
  await store.close();
});

/** Far more than an attempt takes here, and far less than the tests have. */
const LONG_MS = 60_000;
const content = Buffer.from('what was archived');
const archive = (callMs = LONG_MS) =>
  createS3Archive({ bucket: 'archive', prefix: 'orders/', isPathStyle: true, callMs });

const CALLS: readonly (readonly [string, (files: ArchiveFiles) => Promise<unknown>])[] = [
  ['writing', (files) => files.write('a/1', content)],
  ['reading', (files) => files.read('a/1')],
  ['removing', (files) => files.remove('a/1')],
];

/** The first requests meet these, the others are served. */
function meetFirst(...fates: readonly Fate[]): void {
  const left = [...fates];
  store.meet(() => left.shift() ?? 'served');
}

const slowDown: Fate = {
  status: 503,
  body: '<Error><Code>SlowDown</Code><Message>Reduce your rate.</Message></Error>',
};

describe('An archive in S3', () => {
  it('keeps its files under its prefix, each in one request', async () => {
    await archive().write('2026/11/30/1.gz', content);
    expect(await store.keys()).toEqual(['orders/2026/11/30/1.gz']);
    expect(store.asked.map(({ method, key }) => `${method} ${key}`)).toEqual(['PUT orders/2026/11/30/1.gz']);
  });

  it.each(CALLS)('tries three times and no more where it is told to wait, %s', async (operation, run) => {
    await archive().write('a/1', content);
    const before = store.asked.length;
    meetFirst(slowDown, slowDown);
    await expect(run(archive())).resolves.not.toBeNull();
    expect(store.asked.length - before).toBe(3);
    meetFirst(slowDown, slowDown, slowDown);
    await expect(run(archive())).rejects.toMatchObject({
      code: 'NP_ARCHIVE_FAILED',
      message: `${operation} a/1 in the archive s3://archive/orders/: SlowDown: Reduce your rate. (HTTP 503)`,
    });
    expect(store.asked.length - before).toBe(6);
  });

  it.each(CALLS)('gives up when its time is over, %s', async (operation, run) => {
    store.meet(() => 'silent');
    await expect(run(archive(300))).rejects.toMatchObject({
      code: 'NP_ARCHIVE_FAILED',
      message: `${operation} a/1 in the archive s3://archive/orders/: no end within 300 ms`,
    });
    await until('no connection is left', async () => (await store.connections()) === 0, 5_000);
  });

  it('takes no part of a file for the whole, whether the connection breaks or the rest never comes', async () => {
    await archive().write('a/1', content);
    store.meet(() => 'answer-cut');
    await expect(archive().read('a/1')).rejects.toMatchObject({ code: 'NP_ARCHIVE_FAILED' });
    store.meet(() => 'answer-stuck');
    await expect(archive(300).read('a/1')).rejects.toThrow(/no end within 300 ms/);
    await until('no connection is left', async () => (await store.connections()) === 0, 5_000);
  });

  it('writes once more, to the same end, when the answer was lost', async () => {
    meetFirst('answer-lost');
    await archive().write('a/1', content);
    expect(store.asked.map(({ method }) => method)).toEqual(['PUT', 'PUT']);
    expect(Buffer.from((await archive().read('a/1')) ?? [])).toEqual(content);
  });

  it.each<[string, Fate]>([
    ['a bucket that is not there', { status: 404, body: '<Error><Code>NoSuchBucket</Code></Error>' }],
    ['a proxy that knows nothing', { status: 404, body: '<html>Not Found</html>' }],
    ['a refusal', { status: 403, body: '<Error><Code>AccessDenied</Code><Message>Denied</Message></Error>' }],
  ])('does not take %s for a file that was never written', async (_what, fate) => {
    store.meet(() => fate);
    await expect(archive().read('a/1')).rejects.toMatchObject({ code: 'NP_ARCHIVE_FAILED' });
  });

  it('shows neither keys nor signatures when the store refuses them', async () => {
    vi.stubEnv('AWS_ACCESS_KEY_ID', 'AKIAOTHERKEY');
    const told = await archive()
      .write('a/1', content)
      .then(
        () => 'written',
        (error: unknown) => inspect(error, { depth: null, showHidden: true, getters: true }),
      );
    expect(told).toMatch(/NP_ARCHIVE_FAILED/);
    expect(told).toMatch(/InvalidAccessKeyId/);
    expect(told).not.toMatch(/AKIAOTHERKEY|a-secret-of-the-store|Signature=/);
  });

  it('says so where no credentials are found', async () => {
    vi.stubEnv('AWS_ACCESS_KEY_ID', undefined);
    vi.stubEnv('AWS_SHARED_CREDENTIALS_FILE', '/dev/null');
    vi.stubEnv('AWS_CONFIG_FILE', '/dev/null');
    await expect(archive().read('a/1')).rejects.toMatchObject({
      code: 'NP_ARCHIVE_FAILED',
      message: expect.stringMatching(/reading a\/1 in the archive s3:.*credentials/i) as string,
    });
  });
});
