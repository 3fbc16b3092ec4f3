import { MongoClient, MongoServerError, type Db, type Document } from 'mongodb';
import { setTimeout as delay } from 'node:timers/promises';
import { NightporterError } from '@nightporter/protocol';
import { REPLICA_SET_NAME } from './mongod-arguments.js';

const POLL_MS = 50;
const ALREADY_INITIALIZED = 23;

export type MongoEngine = 'MongoDB' | 'SecantusDB';

export interface EngineInfo {
  engine: MongoEngine;
  version: string;
}

/**
 * Makes the server at the port the primary of a set of one and waits until it takes writes. A server that holds the set's
 * configuration already, perhaps from another port, is moved to this one.
 */
export async function ensurePrimary({ port, limitMs }: { port: number; limitMs: number }): Promise<void> {
  const uri = `mongodb://127.0.0.1:${port}/?directConnection=true`;
  await withAdmin({ uri, limitMs }, async (admin) => {
    const deadline = Date.now() + limitMs;
    let hello = await admin.command({ hello: 1 });
    if (hello['isWritablePrimary'] !== true) await configure(admin, port);
    while (hello['isWritablePrimary'] !== true) {
      if (Date.now() > deadline) {
        throw new NightporterError(
          'NP_EMBEDDED_START_FAILED',
          `The replica set at port ${port} has no primary after ${limitMs} ms`,
        );
      }
      await delay(POLL_MS);
      hello = await admin.command({ hello: 1 });
    }
  });
}

/** Who answers at a URI. Throws NP_EMBEDDED_START_FAILED when nobody does, or a server without transactions and change streams. */
export async function identifyServer(at: { source: string; uri: string; limitMs: number }): Promise<EngineInfo> {
  try {
    return await withAdmin(at, async (admin) => {
      const hello = await admin.command({ hello: 1 });
      if (hello['setName'] === undefined && hello['msg'] !== 'isdbgrid') {
        throw new NightporterError(
          'NP_EMBEDDED_START_FAILED',
          `${at.source} leads to a standalone server. Transactions and change streams need a replica set: start it with --replSet and run rs.initiate().`,
        );
      }
      return identify(await admin.command({ buildInfo: 1 }));
    });
  } catch (error) {
    if (error instanceof NightporterError) throw error;
    throw new NightporterError(
      'NP_EMBEDDED_START_FAILED',
      `${at.source} leads to no MongoDB that answers: ${(error as Error).message}`,
      { cause: error },
    );
  }
}

export function identify(buildInfo: Document): EngineInfo {
  const secantus: unknown = buildInfo['secantusVersion'];
  if (typeof secantus === 'string') return { engine: 'SecantusDB', version: secantus };
  return { engine: 'MongoDB', version: String(buildInfo['version']) };
}

async function configure(admin: Db, port: number): Promise<void> {
  const members = [{ _id: 0, host: `127.0.0.1:${port}` }];
  try {
    await admin.command({ replSetInitiate: { _id: REPLICA_SET_NAME, members } });
  } catch (error) {
    if (!(error instanceof MongoServerError) || error.code !== ALREADY_INITIALIZED) throw error;
    await moveMember(admin, port);
  }
}

/** Data that were kept from an earlier run name the port of that run. */
async function moveMember(admin: Db, port: number): Promise<void> {
  const { config } = await admin.command({ replSetGetConfig: 1 });
  const host = `127.0.0.1:${port}`;
  const member = (config as { version: number; members: { host: string }[] }).members[0];
  if (member === undefined || member.host === host) return;
  member.host = host;
  (config as { version: number }).version += 1;
  await admin.command({ replSetReconfig: config as Document, force: true });
}

async function withAdmin<T>(at: { uri: string; limitMs: number }, work: (admin: Db) => Promise<T>): Promise<T> {
  const client = new MongoClient(at.uri, { serverSelectionTimeoutMS: at.limitMs, appName: 'nightporter-embedded' });
  try {
    return await work(client.db('admin'));
  } finally {
    await client.close();
  }
}
