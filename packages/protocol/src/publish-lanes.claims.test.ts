import { beforeEach, describe, expect, test } from 'vitest';
import { driveLanes, testRow, type LanesDriver } from './publish-lanes.support.js';
import type { LaneItem, LaneRow } from './lane.js';

let d: LanesDriver;

beforeEach(() => {
  d = driveLanes({ claims: true });
});

function nextClaim(): LaneItem<LaneRow> {
  const item = d.lanes.nextToClaim(0);
  if (item === null) throw new Error('nothing to claim');
  return item;
}

function claim(item: LaneItem<LaneRow>): void {
  d.lanes.claimed(item, { result: 'done', revision: item.row.revision }, 0);
}

describe('lanes that claim', () => {
  test('send a row once it is claimed, at the revision of the claim', () => {
    d.see(testRow('a', 1));
    expect(d.lanes.nextSend(0)).toBeNull();
    claim(nextClaim());
    expect(d.next().row).toMatchObject({ eventId: 'a/1', revision: 2 });
  });

  test('claim only what may be sent: one row of a lane, and nothing before its predecessors', () => {
    d.see(testRow('a', 1));
    d.see(testRow('a', 2));
    d.see(testRow('b', 3));
    const first = nextClaim();
    expect(first.row.eventId).toBe('a/1');
    expect(d.lanes.nextToClaim(0)).toBeNull();
    claim(first);
    d.publish(d.next());
    expect(nextClaim().row.eventId).toBe('a/2');
  });

  test('claim no more than the window has places for', () => {
    d = driveLanes({ claims: true, windowMax: 2 });
    for (const id of ['a', 'b', 'c', 'd']) d.see(testRow(id, 1));
    claim(nextClaim());
    const second = nextClaim();
    expect(d.lanes.nextToClaim(0)).toBeNull();
    claim(second);
    const sending = d.next();
    d.next();
    expect(d.lanes.nextToClaim(0)).toBeNull();
    d.publish(sending);
    expect(nextClaim().row.eventId).toBe('c/1');
  });

  test('read the outbox after a claim that was refused, and believe it', () => {
    d.see(testRow('a', 1));
    d.lanes.claimed(nextClaim(), { result: 'refused', revision: 1 }, 0);
    expect(d.lanes.nextSend(0)).toBeNull();
    d.read([testRow('a', 1, { revision: 2, status: 'PROCESSING', dueInMs: 1_000 })]);
    expect(d.lanes.nextToClaim(0)).toBeNull();
    expect(d.lanes.nextSend(0)).toBeNull();
  });

  test('claim again what has changed since', () => {
    d.see(testRow('a', 1));
    claim(nextClaim());
    d.see(testRow('a', 1, { revision: 3 }));
    expect(d.lanes.nextSend(0)).toBeNull();
    expect(nextClaim().row.revision).toBe(3);
  });

  test('do not claim again what is still as they claimed it', () => {
    d.see(testRow('a', 1));
    claim(nextClaim());
    d.see(testRow('a', 1, { revision: 2 }));
    expect(d.lanes.nextToClaim(0)).toBeNull();
    expect(d.next().row.revision).toBe(2);
  });

  test('send what was deleted under them without a claim, since it had committed', () => {
    d.see(testRow('a', 1));
    d.lanes.claimed(nextClaim(), { result: 'missing', revision: 1 }, 0);
    expect(d.next().row.eventId).toBe('a/1');
  });

  test('claim nothing of a paused topic', () => {
    d.see(testRow('a', 1));
    d.lanes.setPause({ all: false, topics: ['orders-events'] });
    expect(d.lanes.nextToClaim(0)).toBeNull();
    expect(d.settled).toEqual(['a/1']);
  });
});
