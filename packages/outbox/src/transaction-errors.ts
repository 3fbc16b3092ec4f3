import { NightporterError } from '@nightporter/protocol';
import type { Failure } from './failures.js';
import type { Receipt } from './witness.js';

const IDS_SHOWN = 10;

/** The honest answer when the database was lost over a commit: only a look into the outbox can tell. */
export function unknownOutcome(receipts: readonly Receipt[], cause: unknown): NightporterError {
  const ids = receipts.slice(0, IDS_SHOWN).map(({ eventId }) => eventId);
  const more = receipts.length > ids.length ? ` and ${receipts.length - ids.length} more` : '';
  const hint =
    ids.length === 0
      ? 'It emitted no event by which the outbox could tell.'
      : `It is committed if the outbox, or its archive, has the events ${ids.join(', ')}${more}.`;
  return new NightporterError(
    'NP_STORE_UNAVAILABLE',
    `Whether the transaction committed is unknown: the database did not answer its commit within the time for retries. ${hint}`,
    { cause },
  );
}

export function outOfTime(
  failure: Failure,
  { runs, spentMs }: { readonly runs: number; readonly spentMs: number },
  cause: unknown,
): NightporterError {
  const tried = `after ${runs} ${runs === 1 ? 'run' : 'runs'} in ${spentMs} ms (retryMs); nothing is committed`;
  return failure.kind === 'conflict'
    ? new NightporterError(
        'NP_TRANSACTION_CONFLICT',
        `Concurrent transactions kept winning the same documents, ${tried}.`,
        { cause },
      )
    : new NightporterError('NP_STORE_UNAVAILABLE', `The database did not carry out a transaction, ${tried}.`, {
        cause,
      });
}

export function swallowed(cause: unknown): NightporterError {
  return new NightporterError(
    'NP_TRANSACTION_ABORTED',
    'The database aborted the transaction in every run before its work was done. Either the work takes longer than the server allows ' +
      '(transactionLifetimeLimitSeconds, 60 s), or it caught an error of its own operations, a duplicate key for instance, and went on: ' +
      'such an error has aborted the transaction, and must leave the work.',
    { cause },
  );
}
