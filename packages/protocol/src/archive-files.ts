import { NightporterError } from './errors.js';

/**
 * Where archive files are kept: a folder, or object storage. Names are paths with `/`, of letters, digits, `.`, `_` and `-`, see
 * {@link assertArchiveName}. Each name is written once; the same again with the same content does no harm. A call that could not be carried out
 * rejects with NP_ARCHIVE_FAILED.
 */
export interface ArchiveFiles {
  /**
   * Resolves once the content is durable. What `read` finds of a name is whole, before that too; of a write that failed or was cut off it finds
   * nothing, or later all of it.
   */
  write(name: string, content: Uint8Array): Promise<void>;
  /** Null where nothing of that name was written. */
  read(name: string): Promise<Uint8Array | null>;
  /** Removes what is there of a name, whole or cut off; does nothing where nothing is. */
  remove(name: string): Promise<void>;
}

/** What a folder calls a file that is being written. */
export const PARTIAL_SUFFIX = '.partial';

const NAME = /^[A-Za-z0-9_-][A-Za-z0-9._-]*(\/[A-Za-z0-9_-][A-Za-z0-9._-]*)*$/;

/** The same rules wherever files are kept, so that an archive can be copied from one place to another. Throws NP_ARCHIVE_FAILED. */
export function assertArchiveName(name: string): void {
  if (NAME.test(name) && !name.endsWith(PARTIAL_SUFFIX)) return;
  throw new NightporterError('NP_ARCHIVE_FAILED', `An archive file cannot be called ${JSON.stringify(name)}.`);
}

export type ArchiveLocation =
  | { readonly kind: 'folder'; readonly path: string }
  | {
      readonly kind: 's3';
      readonly bucket: string;
      /** Stands before each name: empty, or with `/` at its end. */
      readonly prefix: string;
      /** Whether the bucket stands in the path of an address, and not in its host. */
      readonly isPathStyle: boolean;
    }
  | { readonly kind: 'malformed'; readonly why: string };

export const ARCHIVE_LOCATION_ACCEPTS =
  'the path of a folder, or s3://bucket/prefix, with ?path-style behind it where the store wants the bucket in the path';

const SCHEME = /^([A-Za-z][A-Za-z0-9+.-]*):\/\//;
const ALMOST_S3 = /^s3:/i;
const BUCKET = /^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/;
const S3 = 's3://';
const PATH_STYLE = '?path-style';

/** What a location means. `why` repeats nothing of it that may be a credential. */
export function archiveLocation(location: string): ArchiveLocation {
  if (location === '') return malformed('it is empty');
  if (!location.startsWith(S3)) {
    const [, scheme] = SCHEME.exec(location) ?? [];
    if (ALMOST_S3.test(location)) return malformed('an address in S3 begins with s3://');
    return scheme === undefined ? { kind: 'folder', path: location } : malformed(`${scheme}:// is not known`);
  }
  if (location.includes('@')) return malformed('credentials do not belong there: the SDK finds them by itself');
  const isPathStyle = location.endsWith(PATH_STYLE);
  const place = location.slice(S3.length, isPathStyle ? -PATH_STYLE.length : undefined);
  if (place.includes('?')) return malformed('nothing but path-style can stand behind the question mark');
  const slash = place.indexOf('/');
  const bucket = slash < 0 ? place : place.slice(0, slash);
  if (!BUCKET.test(bucket)) return malformed(`${JSON.stringify(bucket)} cannot be the name of a bucket`);
  const path = slash < 0 ? '' : place.slice(slash + 1).replace(/\/$/, '');
  if (path !== '' && !NAME.test(path)) return malformed(`${JSON.stringify(path)} cannot be a prefix`);
  return { kind: 's3', bucket, prefix: path === '' ? '' : `${path}/`, isPathStyle };
}

function malformed(why: string): ArchiveLocation {
  return { kind: 'malformed', why };
}
