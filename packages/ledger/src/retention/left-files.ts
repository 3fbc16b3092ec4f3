import { catalogueOf, type ArchiveFiles } from '@nightporter/mongo';
import { removeFile } from './file-batch.js';
import type { RetentionWorld } from './world.js';

/**
 * Removes files that a crash has left: written and never archived, or aged out and not yet removed. Whoever wrote one may still be about to
 * archive it; the catalogue says `removing` first, and then that transaction finds nothing to name and leaves the rows in the outbox.
 */
export async function removeLeftFiles(world: RetentionWorld, files: ArchiveFiles): Promise<void> {
  const left = await catalogueOf(world.database)
    .find({ state: { $in: ['writing', 'removing'] } }, { projection: { _id: 1 } })
    .toArray();
  for (const { _id } of left) {
    await catalogueOf(world.database).updateOne({ _id, state: 'writing' }, { $set: { state: 'removing' } });
    const isStill = await catalogueOf(world.database).findOne({ _id, state: 'removing' });
    if (isStill !== null) await removeFile(world, files, _id);
  }
}
