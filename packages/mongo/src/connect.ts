import { setTimeout as delay } from 'node:timers/promises';
import { MongoClient } from 'mongodb';
import { storeUnavailable } from './driver-errors.js';

export interface ConnectOptions {
  readonly uri: string;
  /** Shown in the server's logs and in currentOp. Default `nightporter`. */
  readonly appName?: string;
  /** How long an operation waits for a usable server before it fails. Default 5,000 ms. */
  readonly serverSelectionMs?: number;
  /** How long one request may take on the wire. Default 20,000 ms. */
  readonly socketMs?: number;
  /** How long opening a connection may take. Default 5,000 ms. */
  readonly connectMs?: number;
  /** How long a write waits for the majority. Default 10,000 ms. */
  readonly writeConcernMs?: number;
  /** Connections at most. Default 20. */
  readonly poolMax?: number;
}

/**
 * A connected client with write concern majority and journal, read concern majority, retryable reads and writes, and a
 * limit on every wait. Options in the URI do not override these. Rejects with NP_STORE_UNAVAILABLE when no primary is found in time.
 */
export async function connectMongo(options: ConnectOptions): Promise<MongoClient> {
  const { serverSelectionMs = 5_000, socketMs = 20_000, connectMs = 5_000, writeConcernMs = 10_000 } = options;
  const client = new MongoClient(options.uri, {
    appName: options.appName ?? 'nightporter',
    writeConcern: { w: 'majority', journal: true, wtimeoutMS: writeConcernMs },
    readConcern: { level: 'majority' },
    readPreference: 'primary',
    retryReads: true,
    retryWrites: true,
    serverSelectionTimeoutMS: serverSelectionMs,
    socketTimeoutMS: socketMs,
    connectTimeoutMS: connectMs,
    waitQueueTimeoutMS: serverSelectionMs,
    maxPoolSize: options.poolMax ?? 20,
  });
  try {
    await client.connect();
    await client.db('admin').command({ ping: 1 });
    return client;
  } catch (error) {
    await client.close();
    throw storeUnavailable(`connecting to MongoDB at ${client.options.hosts.join(', ')}`, error);
  }
}

/**
 * Closes a client, whose sessions and cursors the server is told of. Resolves after `limitMs` all the same: a server that is busy forgets them by
 * itself, and must not hold up the end of a process.
 */
export async function closeMongo(client: { close(): Promise<void> }, limitMs: number): Promise<void> {
  const late = new AbortController();
  try {
    await Promise.race([client.close(), delay(limitMs, undefined, { signal: late.signal, ref: false })]);
  } finally {
    late.abort();
  }
}
