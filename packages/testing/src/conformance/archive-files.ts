import type { ArchiveFiles } from '@nightporter/protocol';
import { describe, expect, it } from 'vitest';

export interface ArchiveFixture {
  /** Opens the same empty place each time, as another process does. */
  readonly open: () => Promise<ArchiveFiles>;
  /** One that cannot be reached. */
  readonly openUnreachable: () => Promise<ArchiveFiles>;
}

/** More than a client sends in one piece. */
const LARGE_BYTES = 3 * 1_048_576;
const everyByte = Uint8Array.from({ length: 256 }, (_, index) => index);
const text = (content: string): Uint8Array => new TextEncoder().encode(content);
const plain = (content: Uint8Array | null): number[] | null => (content === null ? null : [...content]);

/** Every place for archive files keeps to this. The fixture brings a fresh place for each test. */
export function archiveFilesConformance(name: string, makeFixture: () => Promise<ArchiveFixture>): void {
  describe(`${name} as a place for archive files`, () => {
    const opened = async (): Promise<ArchiveFiles> => (await makeFixture()).open();

    it('gives back what was written, byte by byte, and nothing of what was not', async () => {
      const files = await opened();
      await files.write('orders/2026/11/30/1-a.ndjson.gz', everyByte);
      await files.write('2.gz', new Uint8Array());
      expect(plain(await files.read('orders/2026/11/30/1-a.ndjson.gz'))).toEqual(plain(everyByte));
      expect(plain(await files.read('2.gz'))).toEqual([]);
      for (const other of ['orders/2026/11/30/1-a.ndjson.g', 'orders/2026/11/30/1', '3.gz'])
        expect(await files.read(other)).toBeNull();
    });

    it('gives it to others, too, as soon as it was written', async () => {
      const { open } = await makeFixture();
      const large = new Uint8Array(LARGE_BYTES).map((_, index) => index % 251);
      await (await open()).write('a/large', large);
      const found = await (await open()).read('a/large');
      expect(found?.byteLength).toBe(LARGE_BYTES);
      expect(found?.every((byte, index) => byte === index % 251)).toBe(true);
    });

    it('takes the same again, one after the other and at once', async () => {
      const files = await opened();
      await files.write('a/1', text('one'));
      await files.write('a/1', text('one'));
      const repeats = await Promise.allSettled(['a/1', 'a/2', 'a/3'].map((each) => files.write(each, text('one'))));
      expect(repeats.map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled', 'fulfilled']);
      for (const each of ['a/1', 'a/2', 'a/3']) expect(plain(await files.read(each))).toEqual(plain(text('one')));
    });

    it('removes one and no other, and does nothing where nothing is', async () => {
      const files = await opened();
      await files.write('a/1', text('one'));
      await files.write('a/11', text('eleven'));
      await files.remove('a/1');
      await files.remove('a/1');
      await files.remove('never/there');
      expect(await files.read('a/1')).toBeNull();
      expect(plain(await files.read('a/11'))).toEqual(plain(text('eleven')));
    });

    it.each(['../1.gz', '/1.gz', 'a/../b', 'a//b', '.hidden', '', '1.gz.partial'])(
      'refuses the name %j, which may lead out of it',
      async (bad) => {
        const files = await opened();
        const calls = [() => files.write(bad, everyByte), () => files.read(bad), () => files.remove(bad)];
        for (const call of calls) await expect(call()).rejects.toMatchObject({ code: 'NP_ARCHIVE_FAILED' });
      },
    );

    it('says what it could not do with which file, and why, where it cannot be reached', async () => {
      const files = await (await makeFixture()).openUnreachable();
      for (const [operation, failing] of [
        ['writing', () => files.write('a/1', everyByte)],
        ['reading', () => files.read('a/1')],
      ] as const) {
        await expect(failing()).rejects.toMatchObject({
          code: 'NP_ARCHIVE_FAILED',
          message: expect.stringMatching(new RegExp(`^${operation} a/1 in the archive.*: .*[A-Za-z]{4}`)) as string,
        });
      }
    });
  });
}
