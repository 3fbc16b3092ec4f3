import { NightporterError } from '@nightporter/protocol';
import type { MongoClient } from 'mongodb';

export interface ConnectOptions {
  readonly uri: string;
  /** Shown in the server's logs and in currentOp. */
  readonly appName?: string;
  /** How long an operation waits for a usable server before it fails. */
  readonly serverSelectionMs?: number;
  /** How long one request may take on the wire. */
  readonly socketMs?: number;
  readonly connectMs?: number;
  readonly poolMax?: number;
}

/** Connects with write concern majority and journal, read concern majority, retryable writes and bounded waits. */
export function connectMongo(options: ConnectOptions): Promise<MongoClient> {
  return Promise.reject(new NightporterError('NP_INTERNAL', `connectMongo(${options.uri}) is not there yet`));
}
