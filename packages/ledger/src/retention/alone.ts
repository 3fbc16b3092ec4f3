import { runAction } from '@nightporter/mongo';
import { isNightporterError } from '@nightporter/protocol';
import type { ClientSession } from 'mongodb';
import type { RetentionWorld } from './world.js';

interface Alone<Result> {
  /** For messages: what it does, and where. */
  readonly operation: string;
  readonly work: (session: ClientSession) => Promise<Result>;
  readonly signal: AbortSignal | undefined;
}

/**
 * Runs a transaction of retention, and anew while it loses to others, for `conflictMs` at most: a registration keeps `registry` for as long as
 * it is open. Resolves with null, and nothing written, when the run was told to end meanwhile.
 */
export async function runAlone<Result>(
  { client, conflictMs }: RetentionWorld,
  { operation, signal, work }: Alone<Result>,
): Promise<Result | null> {
  try {
    return await runAction(client, operation, work, { conflictMs, signal });
  } catch (error) {
    if (signal?.aborted === true && isNightporterError(error, 'NP_TRANSACTION_CONFLICT')) return null;
    throw error;
  }
}
