import { describe, expect, it } from 'vitest';
import type { CommitAnswer } from './failures.js';
import { backoffMs, judgeCommit, type Inquiry } from './run-transaction.js';

describe('a commit that is not plainly answered', () => {
  it.each<[Exclude<CommitAnswer['kind'], 'committed'>, Inquiry, ReturnType<typeof judgeCommit>]>([
    ['refused', 'committed', 'committed'],
    ['refused', 'absent', 'run-again'],
    ['refused', 'none', 'run-again'],
    ['refused', 'unclear', 'unknown'],
    ['refused', 'unavailable', 'ask-again'],
    ['unanswered', 'committed', 'committed'],
    ['unanswered', 'absent', 'ask-again'],
    ['unanswered', 'none', 'ask-again'],
    ['unanswered', 'unclear', 'ask-again'],
    ['unanswered', 'unavailable', 'ask-again'],
  ])('%s, with the ledger saying %s: %s', (answer, inquiry, judgement) => {
    expect(judgeCommit(answer, inquiry)).toBe(judgement);
  });
});

describe('the pause between two runs', () => {
  it('grows, is spread, and never exceeds its cap', () => {
    expect(backoffMs(1, 0)).toBeLessThan(backoffMs(1, 0.9));
    expect(backoffMs(1, 0.9)).toBeLessThan(backoffMs(4, 0));
    expect(backoffMs(1_000_000, 0.999)).toBeLessThanOrEqual(400);
  });
});
