import { describe, expect, it } from 'vitest';
import { bucketNamed, bucketOf } from './archive-buckets.js';

describe('an archive bucket', () => {
  it.each([
    ['2026-11-30T23:59:59.999Z', 'day', 'outbox_archive_2026_11_30', '2026-11-30', '2026-12-01'],
    ['2024-02-29T00:00:00.000Z', 'day', 'outbox_archive_2024_02_29', '2024-02-29', '2024-03-01'],
    ['2026-12-31T12:00:00.000Z', 'month', 'outbox_archive_2026_12', '2026-12-01', '2027-01-01'],
  ] as const)('of %s by the %s is %s', (at, size, name, from, to) => {
    const bucket = { name, fromMs: Date.parse(from), toMs: Date.parse(to) };
    expect(bucketOf(new Date(at), size)).toEqual(bucket);
    expect(bucketNamed(name)).toEqual(bucket);
  });

  it.each(['outbox_archive', 'outbox_archive_2026', 'outbox_archive_2026_13', 'outbox_archive_2026_02_31', 'outbox'])(
    'is not the collection %s',
    (name) => {
      expect(bucketNamed(name)).toBeNull();
    },
  );
});
