import { setTimeout as delay } from 'node:timers/promises';
import { NightporterError, isNightporterError, type ErrorCode } from '@nightporter/protocol';
import { WriteConcern, type ClientSession, type MongoClient, type TransactionOptions } from 'mongodb';
import { faultOf, hasLabel, messageOf, storeUnavailable } from './driver-errors.js';
import { disturbancesOf } from './topology.js';

const TRANSACTION: TransactionOptions = {
  readConcern: { level: 'snapshot' },
  writeConcern: new WriteConcern('majority', 5_000, true),
  readPreference: 'primary',
  maxCommitTimeMS: 5_000,
};

/** How long a commit whose outcome is unknown is asked for again. */
const COMMIT_MS = 10_000;
const COMMIT_PAUSE_MS = 50;

/** One attempt at a transaction, and what errors mean in it. */
export interface Attempt {
  readonly session: ClientSession;
  /** Runs statements of ours; what the driver throws there is the database's, and the transaction cannot commit any more. */
  readonly own: <Result>(operation: string, run: () => Promise<Result>) => Promise<Result>;
}

/**
 * Runs `work` once in a transaction (snapshot, majority, journaled) and commits it. Rejects with NP_TRANSACTION_CONFLICT when a
 * concurrent transaction won, with NP_STORE_UNAVAILABLE when the database failed or the outcome is unknown, with
 * NP_TRANSACTION_ABORTED when an error was caught in `work` after which the server no longer had the transaction, and else with what
 * `work` threw. Nothing is written unless it resolves, except where the outcome is unknown.
 *
 * The commit loop is ours: the driver's own runs `work` again and, where `work` has caught a duplicate key, does so for two minutes.
 */
export async function runTransaction<Result>(
  client: MongoClient,
  operation: string,
  work: (attempt: Attempt) => Promise<Result>,
): Promise<Result> {
  const session = client.startSession();
  const meaning = meaningOfErrors(client);
  let failure: { readonly error: unknown } | undefined;
  try {
    session.startTransaction(TRANSACTION);
    const result = await work({
      session,
      async own(statement, run) {
        try {
          return await run();
        } catch (error) {
          failure = { error: meaning.ofOurs(statement, error) };
          throw failure.error;
        }
      },
    });
    // Whoever catches our error must not commit half of a verdict.
    if (failure === undefined) await commit(session, operation, meaning);
    else throw failure.error;
    return result;
  } catch (error) {
    throw failure === undefined ? meaning.ofWork(operation, error) : failure.error;
  } finally {
    // Aborts what has not committed, and ends the session with it: on a session that is aborted but not ended, a statement that the
    // work has left running would be carried out outside of any transaction.
    await session.endSession();
  }
}

const OF_THE_DATABASE: ReadonlySet<ErrorCode> = new Set([
  'NP_TRANSACTION_CONFLICT',
  'NP_TRANSACTION_ABORTED',
  'NP_STORE_UNAVAILABLE',
]);

interface Meaning {
  /** Of an error of a statement of ours, or of the commit. */
  ofOurs(operation: string, error: unknown): unknown;
  /** Of an error that came out of the work. */
  ofWork(operation: string, error: unknown): unknown;
}

function meaningOfErrors(client: MongoClient): Meaning {
  const before = disturbancesOf(client);

  function ofAborted(operation: string, error: unknown): NightporterError {
    if (disturbancesOf(client) !== before) return storeUnavailable(operation, error);
    const message =
      'The server gave the transaction up under the handler: it ran past the transaction limit, or an error such as a duplicate key was ' +
      'caught in it and not passed on. An error of the database ends its transaction; write with an upsert and $setOnInsert instead.';
    return new NightporterError('NP_TRANSACTION_ABORTED', message, { cause: error });
  }

  function ofOurs(operation: string, error: unknown): unknown {
    if (isNightporterError(error)) return error;
    switch (faultOf(error)) {
      case 'conflict':
      case 'duplicate-key':
        return conflict(operation, error);
      case 'aborted':
        return ofAborted(operation, error);
      case 'unavailable':
      case 'refused':
        return storeUnavailable(operation, error);
      case 'foreign':
        return error;
    }
  }

  function ofWork(operation: string, error: unknown): unknown {
    if (isNightporterError(error) && OF_THE_DATABASE.has(error.code)) return error;
    switch (faultOf(error)) {
      case 'conflict':
        return conflict(operation, error);
      case 'aborted':
        return ofAborted(operation, error);
      case 'unavailable':
        return storeUnavailable(operation, error);
      case 'duplicate-key':
      case 'refused':
      case 'foreign':
        return error;
    }
  }

  return { ofOurs, ofWork };
}

function conflict(operation: string, error: unknown): NightporterError {
  return new NightporterError('NP_TRANSACTION_CONFLICT', `${operation}: ${messageOf(error)}`, { cause: error });
}

async function commit(session: ClientSession, operation: string, meaning: Meaning): Promise<void> {
  const deadlineMs = performance.now() + COMMIT_MS;
  for (let attempt = 1; ; attempt += 1) {
    try {
      await session.commitTransaction();
      return;
    } catch (error) {
      const isUnknown = hasLabel(error, 'UnknownTransactionCommitResult');
      if (isUnknown && performance.now() < deadlineMs) {
        await delay(COMMIT_PAUSE_MS);
        continue;
      }
      // After an unanswered commit, a server that was restarted in between may deny a transaction that it has committed.
      if (isUnknown || attempt > 1) throw storeUnavailable(`${operation}: the outcome of the commit is unknown`, error);
      throw meaning.ofOurs(operation, error);
    }
  }
}
