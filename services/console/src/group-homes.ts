import { GROUP_HOMES_ACCEPTED, parseGroupHomes, type GroupHome, type GroupPlace } from '@nightporter/ledger';
import { connectMongo } from '@nightporter/mongo';
import type { ValueKind } from '@nightporter/runtime';
import type { MongoClient } from 'mongodb';
import { z } from 'zod';

/** `group=database`, or `group=database@mongodb://…`, several separated by commas; or nothing. */
export function groupHomes(): ValueKind<readonly GroupHome[]> {
  return {
    schema: z.string().transform((value, context) => {
      const found = value === '' ? [] : parseGroupHomes(value);
      if (found !== null) return found;
      context.addIssue({ code: 'custom', message: 'expected group=database' });
      return z.NEVER;
    }),
    accepts: `nothing, or ${GROUP_HOMES_ACCEPTED}`,
  };
}

export interface OpenGroupHomes {
  readonly groups: readonly GroupPlace[];
  close(): Promise<void>;
}

/** Connects to the deployments that are named, once each. Rejects with NP_STORE_UNAVAILABLE, and leaves none open then. */
export async function openGroupHomes(client: MongoClient, homes: readonly GroupHome[]): Promise<OpenGroupHomes> {
  const others = new Map<string, MongoClient>();
  const close = async (): Promise<void> => {
    await Promise.all([...others.values()].map((other) => other.close()));
  };
  try {
    const groups: GroupPlace[] = [];
    for (const { group, database, uri } of homes) {
      if (uri !== null && !others.has(uri)) others.set(uri, await connectMongo({ uri, appName: 'console' }));
      groups.push({ group, database, client: (uri === null ? undefined : others.get(uri)) ?? client });
    }
    return { groups, close };
  } catch (error) {
    await close();
    throw error;
  }
}
