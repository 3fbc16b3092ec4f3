import { describe, expect, test } from 'vitest';
import { decideFailure, type FailedSend } from './publish-failure.js';
import { testRow } from './publish-lanes.support.js';

const limits = { attemptsMax: 3, stalledAfter: 4 };

function failed(changes: Partial<FailedSend>): FailedSend {
  return {
    failure: 'transient',
    answered: true,
    row: testRow('a', 1),
    orphan: false,
    originalMayHaveLanded: false,
    transientFailures: 1,
    topicTakesOthers: false,
    probesTopic: false,
    ...changes,
  };
}

const decide = (changes: Partial<FailedSend>): unknown => decideFailure(failed(changes), limits);

describe('every kind of failure', () => {
  const stalled = { transientFailures: 4, topicTakesOthers: true };
  const spent = { failure: 'permanent', row: testRow('a', 1, { retryCount: 2 }) } as const;
  const again = { kind: 'set-aside', status: 'FAILED', retryCount: 0 };
  const cases: readonly [string, Partial<FailedSend>, unknown][] = [
    ['transient', {}, { kind: 'retry' }],
    ['transient, not often yet', { transientFailures: 3 }, { kind: 'retry' }],
    ['transient again and again, like everything else', { transientFailures: 4 }, { kind: 'close-topic' }],
    ['transient while it probes a closed topic', { probesTopic: true }, { kind: 'close-topic' }],
    ['transient while the topic takes others, but not often yet', { topicTakesOthers: true }, { kind: 'retry' }],
    ['stalled', stalled, again],
    ['stalled again', { ...stalled, topicTakesOthers: false, row: testRow('a', 1, { status: 'FAILED' }) }, again],
    ['stalled, charged before', { ...stalled, row: spent.row }, { kind: 'set-aside', status: 'FAILED', retryCount: 2 }],
    ['stalled, and nowhere but here', { ...stalled, orphan: true }, { kind: 'retry' }],
    ['stalled, unanswered', { ...stalled, originalMayHaveLanded: true }, { kind: 'record-unanswered' }],
    ['topic', { failure: 'topic' }, { kind: 'close-topic' }],
    ['permanent', { failure: 'permanent' }, { kind: 'set-aside', status: 'FAILED', retryCount: 1 }],
    ['permanent for the last time', spent, { kind: 'set-aside', status: 'DEAD', retryCount: 3 }],
    ['permanent, unanswered before', { ...spent, originalMayHaveLanded: true }, { kind: 'record-unanswered' }],
  ];
  test.each(cases)('%s', (_, changes, verdict) => {
    expect(decide(changes)).toEqual(verdict);
  });

  const recorded: readonly [string, Partial<FailedSend>][] = [
    ['is recorded already', { row: testRow('a', 1, { unanswered: true }) }],
    ['is a tombstone', { row: testRow('a', 1, { form: 'tombstone' }) }],
    ['is of a row that nobody can skip any more', { orphan: true }],
  ];
  test.each(recorded)('an unanswered send needs no record when it %s', (_, changes) => {
    const verdict = decide({ failure: 'permanent', originalMayHaveLanded: true, ...changes });
    expect(verdict).toMatchObject({ kind: 'set-aside' });
  });
});
