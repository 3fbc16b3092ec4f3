import type { Outcome, Verdict } from '@nightporter/protocol';
import { parkingOf, type Parking } from './group-changes.js';
import type { EventWork } from './incoming.js';
import type { ParkedFailure } from './ports.js';

/** What becomes of one event, and how it is parked if that parks it. */
export interface Decision {
  readonly outcome: Outcome;
  readonly parking: Parking;
}

export type Decide = (work: EventWork, verdict: Verdict) => Decision;

/**
 * The verdict stands, with one exception: the handler of a suspect event does not run here. It is parked as due, and runs
 * as a claim, whose attempt is on record before the handler starts.
 */
export const byVerdict: Decide = (work, verdict) => {
  const outcome: Outcome = verdict.kind === 'apply' && work.isSuspect ? { kind: 'retry' } : verdict;
  return { outcome, parking: parkingOf(work, outcome) };
};

/** What the ledger brings is only parked, due at once where it is its turn: one path runs parked events. */
export const byLedger: Decide = (work, verdict) => {
  switch (verdict.kind) {
    case 'apply':
    case 'ignore':
    case 'skip': {
      const outcome: Outcome = { kind: 'retry' };
      return { outcome, parking: parkingOf(work, outcome) };
    }
    case 'before-start':
    case 'duplicate':
    case 'version-conflict':
    case 'advance':
    case 'behind':
    case 'gap':
    case 'dead':
      return byVerdict(work, verdict);
  }
};

/** How a failed event is parked. */
export interface FailedParking {
  readonly state: 'retry' | 'dead';
  readonly attempts: number;
  readonly retryInMs: number | null;
  readonly failure: ParkedFailure;
  readonly isSuspect?: true;
}

/**
 * The event failed when it was its turn. If it still is, it is parked; if it meanwhile is not (settled or parked by
 * another, or its position moved), what it has become is followed.
 */
export function byFailure({ state, ...parking }: FailedParking): Decide {
  return (work, verdict) => {
    switch (verdict.kind) {
      case 'apply':
      case 'ignore':
      case 'skip':
        return { outcome: failedOutcome(state, parking.failure), parking };
      case 'before-start':
      case 'duplicate':
      case 'version-conflict':
      case 'advance':
      case 'behind':
      case 'gap':
      case 'dead':
        return byVerdict(work, verdict);
    }
  };
}

function failedOutcome(state: 'retry' | 'dead', failure: ParkedFailure): Outcome {
  return state === 'retry' ? { kind: 'retry' } : { kind: 'dead', code: 'NP_HANDLER_FAILED', reason: failure.message };
}
