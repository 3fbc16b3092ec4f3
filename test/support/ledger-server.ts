import { buildConsole, createOperations, openProducers } from '@nightporter/console';
import { createLogger } from '@nightporter/runtime';
import type { MongoClient } from 'mongodb';
import { randomBytes } from 'node:crypto';

export interface LedgerAddress {
  readonly url: string;
  /** For ledgers alone. */
  readonly token: string;
}

export interface LedgerServer extends LedgerAddress {
  readonly opsToken: string;
  close(): Promise<void>;
}

/** Serves the ledgers of producers on a free port, with tokens of its own. */
export async function serveLedger(client: MongoClient, databases: readonly string[]): Promise<LedgerServer> {
  const [opsToken, token] = [tokenOf('ops'), tokenOf('ledger')];
  const app = await buildConsole({
    producers: openProducers(client, { databases, files: null }),
    operations: createOperations(client, { producers: [], relayDatabase: null }),
    liveEveryMs: 1_000,
    tokens: { ops: opsToken, ledger: token },
    logger: createLogger({ name: 'console', level: 'silent' }),
    checks: {},
    bodyBytesMax: 2_097_152,
    requestsPerMinuteMax: 1_000_000,
  });
  const url = await app.listen({ host: '127.0.0.1', port: 0 });
  return { url, token, opsToken, close: () => app.close() };
}

function tokenOf(name: string): string {
  return `${name}-${randomBytes(16).toString('hex')}`;
}
