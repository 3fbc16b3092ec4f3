import { describe, expect, it } from 'vitest';
import { archiveLocation, assertArchiveName } from './archive-files.js';

describe('the name of an archive file', () => {
  it.each(['1.gz', 'orders_outbox/2026/11/30/1-a.ndjson.gz', '_-'])('may be %j', (name) => {
    expect(() => {
      assertArchiveName(name);
    }).not.toThrow();
  });

  it.each(['../1.gz', '/1.gz', 'a/../b', 'a//b', 'a/', '.hidden', '', '1.gz.partial', 'a b', 'a?b', 'a%2fb'])(
    'cannot be %j, which may lead out of the archive',
    (name) => {
      expect(() => {
        assertArchiveName(name);
      }).toThrow(expect.objectContaining({ code: 'NP_ARCHIVE_FAILED' }));
    },
  );
});

describe('the location of an archive', () => {
  it.each(['/var/lib/nightporter/archive', 'archive', './a b', 'C:\\archive', 's3', 'a/s3://b'])(
    '%j is a folder',
    (path) => {
      expect(archiveLocation(path)).toEqual({ kind: 'folder', path });
    },
  );

  it.each([
    ['s3://archive', 'archive', '', false],
    ['s3://archive/', 'archive', '', false],
    ['s3://our.archive-1/orders', 'our.archive-1', 'orders/', false],
    ['s3://archive/a/b_c/', 'archive', 'a/b_c/', false],
    ['s3://archive?path-style', 'archive', '', true],
    ['s3://archive/a/?path-style', 'archive', 'a/', true],
  ])('%j is in S3', (location, bucket, prefix, isPathStyle) => {
    expect(archiveLocation(location)).toEqual({ kind: 's3', bucket, prefix, isPathStyle });
  });

  it.each([
    ['', /empty/],
    ['s3:/archive', /begins with s3:\/\//],
    ['S3://archive', /begins with s3:\/\//],
    ['gs://archive/orders', /gs:\/\/ is not known/],
    ['file:///var/archive', /file:\/\/ is not known/],
    ['s3://', /"" cannot be the name of a bucket/],
    ['s3:///orders', /"" cannot be the name of a bucket/],
    ['s3://Archive', /"Archive" cannot be the name of a bucket/],
    ['s3://archive//orders', /"\/orders" cannot be a prefix/],
    ['s3://archive/../orders', /cannot be a prefix/],
    ['s3://archive/orders#1', /cannot be a prefix/],
    ['s3://archive?path-style=no', /behind the question mark/],
  ])('%j is refused', (location, why) => {
    expect(archiveLocation(location)).toEqual({ kind: 'malformed', why: expect.stringMatching(why) as string });
  });

  it.each(['s3://AKIAKEY:hunter2secret@archive/orders', 's3://archive/orders?secret=hunter2secret'])(
    'is refused with credentials in it, which are not repeated',
    (location) => {
      const answer = archiveLocation(location);
      expect(answer.kind).toBe('malformed');
      expect(JSON.stringify(answer)).not.toContain('hunter2secret');
    },
  );
});
