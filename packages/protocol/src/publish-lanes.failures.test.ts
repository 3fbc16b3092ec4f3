import { beforeEach, describe, expect, test } from 'vitest';
import type { SendFailure } from './publish-failure.js';
import { driveLanes, idsOf, testRow, type LanesDriver } from './publish-lanes.support.js';

const TRANSIENT: SendFailure = { failure: 'transient', answered: true };
const UNANSWERED: SendFailure = { failure: 'transient', answered: false };
const PERMANENT: SendFailure = { failure: 'permanent', answered: true };
const TOPIC: SendFailure = { failure: 'topic', answered: true };

let d: LanesDriver;

beforeEach(() => {
  d = driveLanes();
});

describe('a send that fails', () => {
  test('transiently is repeated after a growing wait, and uncounted', () => {
    d.see(testRow('a', 1));
    expect(d.lanes.failed(d.next(), TRANSIENT, 0)).toMatchObject({ kind: 'retry', retryInMs: 50 });
    d.lanes.wake(49);
    expect(d.lanes.nextSend(49)).toBeNull();
    d.lanes.wake(50);
    expect(d.lanes.failed(d.next(50), TRANSIENT, 50)).toMatchObject({ kind: 'retry', retryInMs: 100 });
  });

  test('permanently is set aside FAILED, then DEAD, and the lane waits for the mark', () => {
    d.see(testRow('a', 1, { retryCount: 0 }));
    d.see(testRow('a', 2));
    const item = d.next();
    expect(d.lanes.failed(item, PERMANENT, 0)).toMatchObject({ kind: 'set-aside', status: 'FAILED', retryCount: 1 });
    d.see(testRow('a', 3));
    expect(d.settled, 'nothing is deferred before the outbox shows why').toEqual([]);
    d.lanes.markedFailed(item, { result: 'done', status: 'FAILED', retryInMs: 500 }, 0);
    expect(d.settled).toEqual(['a/1', 'a/2', 'a/3']);
    d.lanes.wake(500);
    d.read([testRow('a', 1, { status: 'FAILED', retryCount: 1, revision: 2 })], 500);
    expect(d.lanes.failed(d.next(500), PERMANENT, 500)).toMatchObject({
      kind: 'set-aside',
      status: 'DEAD',
      retryCount: 2,
    });
  });

  test('is judged anew when its mark is refused', () => {
    d.see(testRow('a', 1));
    const item = d.next();
    d.lanes.failed(item, PERMANENT, 0);
    d.lanes.markedFailed(item, { result: 'refused', status: 'DEAD', retryInMs: 0 }, 0);
    d.read([testRow('a', 1, { revision: 5, form: 'tombstone' })]);
    expect(d.next().row.form).toBe('tombstone');
  });

  test('of a row that was deleted meanwhile is settled, and the lane goes on', () => {
    d.see(testRow('a', 1));
    d.see(testRow('a', 2));
    const item = d.next();
    d.lanes.failed(item, PERMANENT, 0);
    d.lanes.markedFailed(item, { result: 'missing', status: 'DEAD', retryInMs: 0 }, 0);
    d.read([testRow('a', 2)]);
    expect(d.next().row.eventId).toBe('a/2');
  });

  test('again and again while its topic takes others is set aside uncharged', () => {
    d.see(testRow('a', 1));
    for (const nowMs of [0, 1_000]) {
      expect(d.lanes.failed(d.next(nowMs), TRANSIENT, nowMs).kind).toBe('retry');
      d.lanes.wake(nowMs + 1_000);
    }
    const item = d.next(2_000);
    d.see(testRow('b', 1), { nowMs: 2_000 });
    d.lanes.sent(d.next(2_000), 2_000);
    expect(d.lanes.failed(item, TRANSIENT, 2_000)).toMatchObject({
      kind: 'set-aside',
      status: 'FAILED',
      retryCount: 0,
    });
  });

  test('again and again while nothing of its topic succeeds closes the topic, and is never set aside', () => {
    d.see(testRow('a', 1));
    for (let nowMs = 0; nowMs < 20_000; nowMs += 1_000) {
      const isStalled = nowMs >= 2_000;
      expect(d.lanes.failed(d.next(nowMs), TRANSIENT, nowMs).kind).toBe(isStalled ? 'close-topic' : 'retry');
      expect(d.lanes.rowsInMemory, 'a row of a closed topic waits in the outbox').toBe(isStalled ? 0 : 1);
      d.lanes.wake(nowMs + 1_000);
      if (isStalled) d.read([testRow('a', 1)], nowMs + 1_000);
    }
  });
});

describe('an original without an answer', () => {
  test('is recorded before it is sent again, and read again after that', () => {
    d.see(testRow('a', 1));
    d.lanes.failed(d.next(), UNANSWERED, 0);
    d.lanes.wake(50);
    const item = d.lanes.nextToRecord();
    expect(item?.row.eventId).toBe('a/1');
    expect(d.lanes.nextSend(50)).toBeNull();
    d.lanes.recorded(item!, 'done', 50);
    d.read([testRow('a', 1, { revision: 2, unanswered: true })], 50);
    expect(d.next(50).row).toMatchObject({ revision: 2, unanswered: true });
    expect(d.lanes.nextToRecord()).toBeNull();
  });

  test('is recorded at the new revision when the row had changed, even if it is DEAD by then', () => {
    d.see(testRow('a', 1));
    d.lanes.failed(d.next(), UNANSWERED, 0);
    d.lanes.wake(50);
    d.lanes.recorded(d.lanes.nextToRecord()!, 'refused', 50);
    d.read([testRow('a', 1, { revision: 4, status: 'DEAD' })], 50);
    expect(d.lanes.nextToRecord()?.row.revision).toBe(4);
  });

  test('is not dropped with its lane before it is recorded', () => {
    d.see(testRow('a', 1));
    d.lanes.failed(d.next(), UNANSWERED, 0);
    d.see(testRow('b', 1));
    d.lanes.failed(d.next(), TOPIC, 0);
    d.lanes.wake(50);
    expect(d.lanes.nextToRecord()?.row.eventId).toBe('a/1');
  });

  test('may be an earlier owner’s: what it may have sent is recorded before it is set aside', () => {
    d.see(testRow('a', 1), { inherited: true });
    expect(d.lanes.failed(d.next(), PERMANENT, 0).kind).toBe('record-unanswered');
    d.lanes.recorded(d.lanes.nextToRecord()!, 'done', 0);
    d.read([testRow('a', 1, { revision: 2, unanswered: true })]);
    expect(d.lanes.failed(d.next(), PERMANENT, 0).kind).toBe('set-aside');
  });

  test('does not matter for a tombstone', () => {
    d.see(testRow('a', 1, { form: 'tombstone' }));
    d.lanes.failed(d.next(), UNANSWERED, 0);
    d.lanes.wake(50);
    expect(d.lanes.nextToRecord()).toBeNull();
    expect(d.next(50).row.form).toBe('tombstone');
  });
});

describe('a topic that cannot be sent to', () => {
  const other = { topic: 'other-events' };

  test('has its lanes held, uncounted, while other topics flow', () => {
    d.see(testRow('a', 1));
    d.see(testRow('b', 1));
    d.see(testRow('c', 1, other));
    expect(d.lanes.failed(d.next(), TOPIC, 0)).toMatchObject({ kind: 'close-topic', retryInMs: 500 });
    expect(d.settled).toEqual(['a/1']);
    expect(idsOf([d.next(), d.lanes.nextSend(0)])).toEqual(['c/1', null]);
    expect(d.settled).toEqual(['a/1', 'b/1']);
    expect(d.lanes.topicsClosed).toEqual(['orders-events']);
  });

  test('is probed by one lane, and for longer each time', () => {
    d.see(testRow('a', 1));
    d.see(testRow('b', 1));
    d.lanes.failed(d.next(), TOPIC, 0);
    d.lanes.nextSend(0);
    d.lanes.wake(500);
    d.read([testRow('a', 1)], 500);
    expect(d.lanes.failed(d.next(500), TOPIC, 500)).toMatchObject({ kind: 'close-topic', retryInMs: 1_000 });
    expect(d.lanes.takeSweepWanted()).toBe(false);
  });

  test('is probed by its lanes in turn, since the fault may be one row’s', () => {
    d.see(testRow('a', 1));
    d.see(testRow('b', 1));
    d.lanes.failed(d.next(), TOPIC, 0);
    d.lanes.nextSend(0);
    d.lanes.wake(500);
    d.read([testRow('a', 1)], 500);
    expect(d.lanes.failed(d.next(500), TRANSIENT, 500).kind, 'a probe that fails decides alone').toBe('close-topic');
    d.lanes.wake(1_500);
    d.read([testRow('b', 1)], 1_500);
    const probe = d.next(1_500);
    expect(probe.row.eventId).toBe('b/1');
    d.lanes.sent(probe, 1_500);
    expect(d.lanes.topicsClosed).toEqual([]);
  });

  test('opens with the first success, and a sweep fetches what was deferred', () => {
    d.see(testRow('a', 1));
    d.lanes.failed(d.next(), TOPIC, 0);
    d.lanes.wake(500);
    d.read([testRow('a', 1)], 500);
    d.lanes.sent(d.next(500), 500);
    expect(d.lanes.topicsClosed).toEqual([]);
    expect([d.lanes.takeSweepWanted(), d.lanes.takeSweepWanted()]).toEqual([true, false]);
  });

  test('opens when the lane that should probe it has nothing to send', () => {
    d.see(testRow('a', 1));
    d.lanes.failed(d.next(), TOPIC, 0);
    d.lanes.wake(500);
    d.read([], 500);
    expect(d.lanes.topicsClosed).toEqual([]);
  });
});
