import { NightporterError, type AggregateKey } from '@nightporter/protocol';
import { WriteConcern, type ClientSession, type MongoClient, type TransactionOptions as DriverOptions } from 'mongodb';
import { commitAnswerOf, type CommitAnswer } from './failures.js';
import type { TransactionScope } from './outbox.js';
import type { TransactionEvents } from './transaction-events.js';
import type { Receipt } from './witness.js';

/** How the work of one run ended, before its commit. */
export type WorkOutcome<Result> =
  | { readonly kind: 'ready'; readonly result: Result; readonly receipts: readonly Receipt[] }
  /**
   * Nothing of it can ever be committed. `emitError` is what the first failed emit threw, wherever that went, and `contested` the
   * aggregate of that event.
   */
  | {
      readonly kind: 'rolled-back';
      readonly error: unknown;
      readonly emitError: unknown;
      readonly contested: AggregateKey | null;
    };

/** One run of a transaction, on a session of its own: what a run leaves behind by mistake cannot reach the next one. */
export interface Attempt<Result> {
  work(): Promise<WorkOutcome<Result>>;
  /** After a `ready` work only; may be repeated while it is unanswered. */
  commit(): Promise<CommitAnswer>;
  end(): Promise<void>;
}

/** How long one commit may take until it counts as unanswered. */
const COMMIT_MS = 10_000;

/**
 * Snapshot reads give the work one view of the data; majority and journal make a commit that was answered last over any crash. The
 * primary is asked whatever the client's default.
 */
const TRANSACTION: DriverOptions = {
  readConcern: { level: 'snapshot' },
  writeConcern: new WriteConcern('majority', COMMIT_MS, true),
  readPreference: 'primary',
  maxCommitTimeMS: COMMIT_MS,
};

interface AttemptOptions<Result> {
  readonly client: MongoClient;
  readonly work: (scope: TransactionScope) => Promise<Result>;
  readonly eventsOn: (session: ClientSession) => TransactionEvents;
}

export function createAttempt<Result>({ client, work, eventsOn }: AttemptOptions<Result>): Attempt<Result> {
  const session = client.startSession();
  const events = eventsOn(session);
  return {
    work: async () => {
      try {
        session.startTransaction(TRANSACTION);
        const result = await work({ session, emit: (event) => events.emit(event) });
        if (!session.inTransaction()) throw endedByWork();
        return { kind: 'ready', result, receipts: await events.flush() };
      } catch (error) {
        events.close();
        // Aborts and ends in one: after an abort alone, a statement that the work left running would be carried out on its own.
        await session.endSession();
        const { failure } = events;
        return { kind: 'rolled-back', error, emitError: failure?.error, contested: failure?.aggregate ?? null };
      }
    },
    commit: async () => {
      try {
        await session.commitTransaction();
        await session.endSession();
        return { kind: 'committed' };
      } catch (error) {
        return commitAnswerOf(error);
      }
    },
    end: () => session.endSession(),
  };
}

function endedByWork(): NightporterError {
  return new NightporterError(
    'NP_NO_TRANSACTION',
    'The work committed or aborted its transaction by itself; throw to roll back, return to commit.',
  );
}
