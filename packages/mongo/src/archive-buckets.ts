import { OUTBOX_COLLECTIONS } from './collections.js';

/** How much time the rows of one archive collection span, by UTC. */
export type BucketSize = 'day' | 'month';

/** An archive collection, `outbox_archive_2026_11_30` or `outbox_archive_2026_11`, and when its rows were published. */
export interface ArchiveBucket {
  readonly name: string;
  readonly fromMs: number;
  /** The first moment that is not in it any more. */
  readonly toMs: number;
}

const BUCKET = new RegExp(`^${OUTBOX_COLLECTIONS.archive}_(\\d{4})_(\\d{2})(?:_(\\d{2}))?$`);

/** The bucket of a row that was published at a moment. */
export function bucketOf(publishedAt: Date, size: BucketSize): ArchiveBucket {
  const [year, month, day] = publishedAt.toISOString().slice(0, 10).split('-');
  const parts = size === 'day' ? [year, month, day] : [year, month];
  const bucket = bucketNamed([OUTBOX_COLLECTIONS.archive, ...parts].join('_'));
  if (bucket === null) throw new RangeError(`no bucket holds ${publishedAt.toISOString()}`);
  return bucket;
}

/** The bucket that a collection is, by its name; null for any other collection. */
export function bucketNamed(name: string): ArchiveBucket | null {
  const [, year, month, day] = BUCKET.exec(name) ?? [];
  if (year === undefined || month === undefined) return null;
  const [y, m, d] = [Number(year), Number(month) - 1, day === undefined ? null : Number(day)];
  const fromMs = Date.UTC(y, m, d ?? 1);
  const toMs = d === null ? Date.UTC(y, m + 1, 1) : Date.UTC(y, m, d + 1);
  // `2026_02_31` is not a day.
  const isDate = new Date(fromMs)
    .toISOString()
    .startsWith([year, month, ...(day === undefined ? [] : [day])].join('-'));
  return isDate ? { name, fromMs, toMs } : null;
}
