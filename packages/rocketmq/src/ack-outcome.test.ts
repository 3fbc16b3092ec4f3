import { expect, it } from 'vitest';
import { judgeAcknowledgement } from './ack-outcome.js';

const ok = { code: 20_000, message: 'OK' };
const multiple = { code: 30_000, message: 'MULTIPLE_RESULTS' };
const expired = { code: 40_013, message: 'receipt handle is expired' };
const broken = { code: 50_001, message: 'ack failed: status is abnormal' };

it('An acknowledgement of every message is one', () => {
  expect(judgeAcknowledgement({ status: ok, entries: [ok, ok] }, 2)).toEqual({ kind: 'acknowledged', stale: 0 });
});

it('Stale receipts are counted, and no failure, even if all are stale', () => {
  expect(judgeAcknowledgement({ status: multiple, entries: [expired, ok] }, 2)).toEqual({
    kind: 'acknowledged',
    stale: 1,
  });
  expect(judgeAcknowledgement({ status: expired, entries: [expired, expired] }, 2)).toEqual({
    kind: 'acknowledged',
    stale: 2,
  });
});

it('One failed entry fails the acknowledgement, although the request as a whole has a result', () => {
  expect(judgeAcknowledgement({ status: multiple, entries: [ok, broken, ok] }, 3)).toEqual({
    kind: 'failed',
    reason: '1 of 3 messages: 50001 ack failed: status is abnormal',
  });
});

it('A failed request fails the acknowledgement, although no entry says so', () => {
  const throttled = { code: 42_900, message: 'flow limit' };
  expect(judgeAcknowledgement({ status: throttled, entries: [] }, 1)).toEqual({
    kind: 'failed',
    reason: '42900 flow limit',
  });
  expect(judgeAcknowledgement({ status: null, entries: [] }, 1)).toMatchObject({ kind: 'failed' });
});

it('A message whose outcome is not told counts as not acknowledged', () => {
  expect(judgeAcknowledgement({ status: ok, entries: [ok] }, 2)).toEqual({
    kind: 'failed',
    reason: 'the broker told the outcome of 1 of 2 messages only',
  });
});
