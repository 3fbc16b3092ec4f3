import { beforeEach, describe, expect, test } from 'vitest';
import type { LaneRow } from './lane.js';
import { TEST_POLICY, driveLanes, idsOf, testRow, type LanesDriver } from './publish-lanes.support.js';

let d: LanesDriver;

beforeEach(() => {
  d = driveLanes();
});

describe('the predecessor rule', () => {
  test('version 1 is sent at once', () => {
    d.see(testRow('a', 1));
    expect(d.next().row.eventId).toBe('a/1');
  });

  test('a version is sent behind the one that this relay published, before that is even marked', () => {
    d.see(testRow('a', 1));
    d.see(testRow('a', 2));
    const first = d.next();
    expect(d.lanes.nextSend(0)).toBeNull();
    d.lanes.sent(first, 0);
    expect(d.next().row.eventId).toBe('a/2');
  });

  test('any other version waits until the outbox shows nothing unsettled below it', () => {
    d.see(testRow('a', 7));
    expect(d.lanes.nextSend(0)).toBeNull();
    d.read([testRow('a', 7)]);
    expect(d.next().row.eventId).toBe('a/7');
  });

  test('what the outbox shows below it goes first', () => {
    d.see(testRow('a', 7));
    d.read([testRow('a', 5)]);
    d.publish(d.next());
    expect(d.lanes.nextSend(0)).toBeNull();
    d.read([testRow('a', 7)]);
    expect(d.next().row.eventId).toBe('a/7');
  });

  test('a row that came while the outbox was being read is not vouched for by that reading', () => {
    d.see(testRow('a', 3));
    const { lanes: wanted, limit } = d.lanes.nextReads(1);
    d.see(testRow('a', 5));
    const lookedUp = new Map([[testRow('a', 3).eventId, testRow('a', 3, { status: 'PUBLISHED' })]]);
    d.lanes.refresh(wanted[0]!, { rows: [], limit, lookedUp }, 0);
    expect(d.settled).toEqual(['a/3']);
    expect(d.lanes.nextSend(0)).toBeNull();
  });

  test('the lowest row of a sweep is sent without another reading', () => {
    d.see(testRow('a', 7), { lowest: true });
    expect(d.next().row.eventId).toBe('a/7');
  });

  test('a forgotten predecessor costs a reading, and nothing else', () => {
    d = driveLanes({ rememberedLanesMax: 1 });
    d.see(testRow('a', 1));
    d.publish(d.next());
    d.see(testRow('b', 1));
    d.publish(d.next());
    d.see(testRow('b', 2));
    d.publish(d.next());
    d.see(testRow('a', 2));
    expect(d.lanes.nextSend(0)).toBeNull();
    d.read([testRow('a', 2)]);
    expect(d.next().row.eventId).toBe('a/2');
  });

  test('after an outbox was replaced, memory permits nothing', () => {
    d.see(testRow('a', 1));
    d.publish(d.next());
    d.lanes.forgetPublished();
    d.see(testRow('a', 2));
    expect(d.lanes.nextSend(0)).toBeNull();
  });

  test('aggregates of two outboxes with the same name do not share a lane', () => {
    d.see(testRow('a', 1));
    d.see(testRow('a', 1, { namespace: 'other.outbox' as LaneRow['namespace'], eventId: 'x' as LaneRow['eventId'] }));
    expect(idsOf([d.next(), d.next()])).toEqual(['a/1', 'x']);
  });
});

describe('the window', () => {
  test('bounds the sends in flight over all lanes', () => {
    d = driveLanes({ windowMax: 2 });
    for (const aggregate of ['a', 'b', 'c']) d.see(testRow(aggregate, 1));
    const first = d.next();
    d.next();
    expect(d.lanes.nextSend(0)).toBeNull();
    d.lanes.sent(first, 0);
    expect(d.next().row.eventId).toBe('c/1');
  });

  test('has room again once rows are marked, not when they are sent', () => {
    d = driveLanes({ bufferMax: 1 });
    d.see(testRow('a', 1));
    expect(d.lanes.hasRoom).toBe(false);
    const item = d.next();
    d.lanes.sent(item, 0);
    expect(d.lanes.hasRoom).toBe(false);
    d.lanes.markedPublished(item, 'done', 0);
    expect(d.lanes.hasRoom).toBe(true);
  });
});

describe('sightings of one row', () => {
  test('a second one of a sent row waits for the mark of the first', () => {
    d.see(testRow('a', 1));
    const item = d.next();
    d.lanes.sent(item, 0);
    expect(d.see(testRow('a', 1))).toBe('known');
    expect(d.settled).toEqual([]);
    d.lanes.markedPublished(item, 'done', 0);
    expect(d.settled).toEqual(['a/1', 'a/1']);
    expect(d.lanes.nextSend(0)).toBeNull();
  });

  test('one that was read before the mark and arrives after it is looked up, not sent', () => {
    d.see(testRow('a', 1));
    d.publish(d.next());
    expect(d.see(testRow('a', 1))).toBe('known');
    expect(d.lanes.nextSend(0)).toBeNull();
    d.read([], 0, new Map([[testRow('a', 1).eventId, testRow('a', 1, { status: 'PUBLISHED' })]]));
    expect(d.settled).toEqual(['a/1', 'a/1']);
    expect(d.lanes.rowsInMemory).toBe(0);
  });

  test('a published row is settled at once', () => {
    d.see(testRow('a', 1, { status: 'PUBLISHED' }));
    expect(d.settled).toEqual(['a/1']);
  });

  test('what is being sent keeps the revision and form that it was read with', () => {
    d.see(testRow('a', 1));
    const item = d.next();
    d.see(testRow('a', 1, { revision: 3, form: 'tombstone' }));
    expect(item.row).toMatchObject({ revision: 1, form: 'original' });
  });

  test('a newer reading replaces what is still waiting', () => {
    d.see(testRow('a', 1, { status: 'DEAD', revision: 2 }));
    d.see(testRow('a', 1, { revision: 3, form: 'tombstone' }));
    expect(d.next().row).toMatchObject({ revision: 3, form: 'tombstone' });
  });
});

describe('a held lane', () => {
  test('drops and defers the rows behind a DEAD one, and other lanes flow', () => {
    d.see(testRow('a', 1, { status: 'DEAD' }));
    d.see(testRow('a', 2));
    d.see(testRow('b', 1));
    expect(d.settled).toEqual(['a/1', 'a/2']);
    expect(d.lanes.lanesHeld).toBe(1);
    expect(idsOf([d.next(), d.lanes.nextSend(0)])).toEqual(['b/1', null]);
    expect(d.lanes.rowsInMemory).toBe(1);
  });

  test('is read again when its FAILED row is due, and then sends all that it dropped, in order', () => {
    d.see(testRow('a', 1, { status: 'FAILED', dueInMs: 500 }));
    d.see(testRow('a', 2));
    expect(d.lanes.nextDueAtMs).toBe(500);
    d.lanes.wake(500);
    d.read([testRow('a', 1, { status: 'FAILED' })]);
    d.publish(d.next());
    d.read([testRow('a', 2)]);
    expect(d.next().row.eventId).toBe('a/2');
  });

  test('behind a DEAD row is read again every so often, so that an operator’s edit is noticed', () => {
    d.see(testRow('a', 1, { status: 'DEAD' }));
    d.lanes.wake(TEST_POLICY.heldReadEveryMs);
    d.read([testRow('a', 1, { revision: 3 })]);
    expect(d.next().row.revision).toBe(3);
  });

  test('opens when a sweep shows that its row has changed', () => {
    d.see(testRow('a', 1, { status: 'DEAD', revision: 2 }));
    d.see(testRow('a', 1, { revision: 3 }), { lowest: true });
    expect(d.next().row.revision).toBe(3);
  });

  test('does not open upon an older reading of its row', () => {
    d.see(testRow('a', 1));
    const item = d.next();
    d.lanes.failed(item, { failure: 'permanent', answered: true }, 0);
    d.lanes.markedFailed(item, { result: 'done', status: 'FAILED', retryInMs: 500 }, 0);
    d.see(testRow('a', 1, { revision: 1 }), { lowest: true });
    expect(d.lanes.nextSend(0)).toBeNull();
  });

  test('is read when a sweep shows another row as the lowest: what held it is gone', () => {
    d.see(testRow('a', 1, { status: 'DEAD' }));
    d.see(testRow('a', 2), { lowest: true });
    d.read([testRow('a', 2)]);
    expect(d.next().row.eventId).toBe('a/2');
  });

  test('keeps what the outbox does not have', () => {
    d.see(testRow('a', 1, { status: 'DEAD' }));
    d.see(testRow('a', 2), { inOutbox: false });
    expect(d.settled).toEqual(['a/1']);
    expect(d.lanes.rowsInMemory).toBe(1);
  });

  test('is forgotten when too many are held, and a sweep brings it back', () => {
    d = driveLanes({ heldLanesMax: 1 });
    d.see(testRow('a', 1, { status: 'DEAD' }));
    d.see(testRow('b', 1, { status: 'DEAD' }));
    expect([d.lanes.lanesHeld, d.lanes.heldLanesForgotten]).toEqual([1, 1]);
    d.see(testRow('a', 1, { revision: 2 }), { lowest: true });
    expect(d.next().row.eventId).toBe('a/1');
  });

  test('behind a row that a polling relay has claimed waits for the claim', () => {
    d.see(testRow('a', 1, { status: 'PROCESSING', dueInMs: 700 }));
    expect(d.lanes.nextDueAtMs).toBe(700);
    expect(d.lanes.nextSend(0)).toBeNull();
  });
});

test('a row that outbox and archive do not have is sent from the stream’s copy', () => {
  d.see(testRow('a', 1), { inOutbox: false });
  const item = d.next();
  d.lanes.sent(item, 0);
  d.lanes.markedPublished(item, 'missing', 0);
  expect(d.settled).toEqual(['a/1']);
});

test('a sweep may pass over what lies behind the row that holds a lane', () => {
  d.see(testRow('a', 3, { status: 'DEAD' }), { lowest: true });
  expect([2, 3, 4].map((version) => d.lanes.isHeldBelow(testRow('a', version)))).toEqual([false, false, true]);
});
