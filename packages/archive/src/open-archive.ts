import { createArchiveFolder } from '@nightporter/mongo';
import { ARCHIVE_LOCATION_ACCEPTS, NightporterError, archiveLocation, type ArchiveFiles } from '@nightporter/protocol';

/**
 * Opens the archive at `location`: the path of a folder, or `s3://bucket/prefix`, with `?path-style` behind it for a store that wants the
 * bucket in the path. Nothing is asked of it yet. The SDK for S3 is loaded here, and only for S3. Throws NP_CONFIG_INVALID for a location that is
 * malformed, and where the optional package `@nightporter/archive-s3` is not installed.
 */
export async function openArchive(location: string): Promise<ArchiveFiles> {
  const found = archiveLocation(location);
  switch (found.kind) {
    case 'folder':
      return createArchiveFolder(found.path);
    case 's3': {
      const { createS3Archive } = await loadS3();
      return createS3Archive(found);
    }
    case 'malformed': {
      const message = `The location of an archive is refused: ${found.why}; accepted: ${ARCHIVE_LOCATION_ACCEPTS}.`;
      throw new NightporterError('NP_CONFIG_INVALID', message);
    }
  }
}

async function loadS3() {
  try {
    return await import('@nightporter/archive-s3');
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    const message = `An archive in S3 needs the optional package @nightporter/archive-s3, which cannot be loaded: ${why}`;
    throw new NightporterError('NP_CONFIG_INVALID', message, { cause });
  }
}
