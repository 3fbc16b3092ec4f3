import type { LaneRow } from './lane.js';

/** What a send that failed says: see the relay's `PublishError`. */
export interface SendFailure {
  readonly failure: 'transient' | 'topic' | 'permanent';
  /** False when the broker may have stored the message all the same. */
  readonly answered: boolean;
}

export interface FailedSend extends SendFailure {
  readonly row: LaneRow;
  /** The outbox has no such row, so nothing can be written about it. */
  readonly orphan: boolean;
  /** An earlier send of the original, by this relay or by one before it, may have landed without an answer. */
  readonly originalMayHaveLanded: boolean;
  /** Transient failures of this row in a row, this one included. */
  readonly transientFailures: number;
  /** The topic has taken other messages since this row first failed. */
  readonly topicTakesOthers: boolean;
  /** The topic was closed, and this send was to find out whether it takes messages again. */
  readonly probesTopic: boolean;
}

export interface FailureLimits {
  readonly attemptsMax: number;
  readonly stalledAfter: number;
}

export type FailureVerdict =
  /** Wait and send again, in the same order; no attempt is counted. */
  | { readonly kind: 'retry' }
  /** The outbox has first to say that the original may have landed; then send again. */
  | { readonly kind: 'record-unanswered' }
  /** Nothing of this topic can be sent; no attempt is counted. */
  | { readonly kind: 'close-topic' }
  /** The row is to be marked FAILED or DEAD, and its lane held. */
  | { readonly kind: 'set-aside'; readonly status: 'FAILED' | 'DEAD'; readonly retryCount: number };

/**
 * What follows from a failed send.
 *
 * A row that fails transiently again and again would keep the checkpoint from moving, and rows like it would fill the
 * memory until nothing is read any more. While its topic takes others it is set aside as FAILED without being charged, so a
 * broker's outage kills nothing, however partial it is. While its topic takes nothing, the topic is closed: its rows wait in
 * the outbox, and the other topics flow. A row that was set aside before is set aside again: it proves nothing about its topic.
 *
 * An operator can skip only what is DEAD. If an unanswered original of such a row may have landed, some group may have
 * applied it, and the outbox has to say so before the row is set aside.
 */
export function decideFailure(send: FailedSend, limits: FailureLimits): FailureVerdict {
  const { row } = send;
  const mustBeRecorded = send.originalMayHaveLanded && row.form === 'original' && !row.unanswered && !send.orphan;
  switch (send.failure) {
    case 'topic':
      return { kind: 'close-topic' };
    case 'transient': {
      const stalled = send.transientFailures >= limits.stalledAfter;
      if (send.probesTopic && !send.topicTakesOthers) return { kind: 'close-topic' };
      if (!stalled) return { kind: 'retry' };
      const isOddOne = send.topicTakesOthers || row.status === 'FAILED';
      if (!isOddOne) return { kind: 'close-topic' };
      if (send.orphan) return { kind: 'retry' };
      if (mustBeRecorded) return { kind: 'record-unanswered' };
      return { kind: 'set-aside', status: 'FAILED', retryCount: row.retryCount };
    }
    case 'permanent': {
      if (mustBeRecorded) return { kind: 'record-unanswered' };
      const retryCount = row.retryCount + 1;
      return { kind: 'set-aside', status: retryCount >= limits.attemptsMax ? 'DEAD' : 'FAILED', retryCount };
    }
  }
}
