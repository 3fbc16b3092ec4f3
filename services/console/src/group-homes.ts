import type { GroupPlace } from '@nightporter/ledger';
import { connectMongo } from '@nightporter/mongo';
import type { ValueKind } from '@nightporter/runtime';
import type { MongoClient } from 'mongodb';
import { z } from 'zod';

/** Where a group keeps its data: on the deployment of MONGODB_URI, or on another one. */
export interface GroupHome {
  readonly group: string;
  readonly database: string;
  readonly uri: string | null;
}

/** A URI may have commas and an `@`: a comma only parts where a group follows, and the database ends at the first `@mongodb`. */
const BETWEEN = /,\s*(?=[%A-Za-z0-9_-]+(?:@\d+)?=)/;
const HOME = /^([%A-Za-z0-9_-]{1,100}(?:@[1-9][0-9]{0,3})?)=([A-Za-z0-9_-]{1,38})(?:@(mongodb(?:\+srv)?:\/\/\S+))?$/;

/** `group=database`, or `group=database@mongodb://…`, several separated by commas; or nothing. */
export function groupHomes(): ValueKind<readonly GroupHome[]> {
  return {
    schema: z.string().transform((value, context) => {
      const homes = value === '' ? [] : value.split(BETWEEN).map(homeOf);
      const found = homes.filter((home) => home !== null);
      const isRepeated = new Set(found.map(({ group }) => group)).size < found.length;
      if (found.length === homes.length && !isRepeated) return found;
      context.addIssue({ code: 'custom', message: 'expected group=database' });
      return z.NEVER;
    }),
    accepts: 'nothing, or group=database or group=database@mongodb://…, each group once, separated by commas',
  };
}

function homeOf(text: string): GroupHome | null {
  const [, group, database, uri = null] = HOME.exec(text.trim()) ?? [];
  return group === undefined || database === undefined ? null : { group, database, uri };
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
