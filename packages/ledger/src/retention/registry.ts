import { REGISTRY, type GroupDocument, type RegistryDocument } from '@nightporter/mongo';
import type { ClientSession, Collection } from 'mongodb';
import type { Standing } from './policy.js';

type Groups = Collection<GroupDocument>;

/** How far the groups are, at this moment. */
export async function readStandings(groups: Groups, session?: ClientSession): Promise<readonly Standing[]> {
  const projection = { topics: 1, watermark: 1 };
  const found = await groups
    .find<Pick<GroupDocument, '_id' | 'topics' | 'watermark'>>(
      { _id: { $ne: REGISTRY } },
      { projection, ...(session && { session }) },
    )
    .toArray();
  return found.map(({ _id, topics, watermark }) => ({ group: _id, topics, watermarkMs: watermark.getTime() }));
}

/** The same in a transaction that no registration of a group, and no other retention, runs beside. */
export async function readStandingsAlone(groups: Groups, session: ClientSession): Promise<readonly Standing[]> {
  await registryOf(groups).updateOne({ _id: REGISTRY }, { $inc: { revision: 1 } }, { session, upsert: true });
  return readStandings(groups, session);
}

/** Puts down how far the rows of each topic are gone for good, for a group that would begin with them. */
export async function recordDeleted(
  groups: Groups,
  rows: readonly { readonly topic: string; readonly publishedAt: Date }[],
  session: ClientSession,
): Promise<void> {
  const deletedTo = new Map<string, Date>();
  for (const { publishedAt, topic } of rows) {
    const known = deletedTo.get(topic);
    if (known === undefined || known < publishedAt) deletedTo.set(topic, publishedAt);
  }
  if (deletedTo.size === 0) return;
  const fields = [...deletedTo].map(([topic, moment]) => [`deletedTo.${topic}`, moment]);
  await registryOf(groups).updateOne({ _id: REGISTRY }, { $max: Object.fromEntries(fields) as object }, { session });
}

function registryOf(groups: Groups): Collection<RegistryDocument> {
  return groups as unknown as Collection<RegistryDocument>;
}
