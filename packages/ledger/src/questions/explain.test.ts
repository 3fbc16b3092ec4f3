import { describe, expect, it } from 'vitest';
import { explainGroup, explainRelay, needOf, type GroupFacts, type ParkedNote, type RelayFacts } from './explain.js';

const pending: RelayFacts = {
  status: 'PENDING',
  form: 'original',
  retryCount: 0,
  nextRetryAt: null,
  lastError: null,
  claimedBy: null,
  unsettledBefore: null,
  pauses: [],
  holders: ['relay-a'],
};
const first = { version: 1, eventId: 'e1', status: 'DEAD' };
const pause = { scope: 'all', by: 'ada', reason: 'moved', at: new Date(0) };

describe('why an event is not published', () => {
  it.each<[string, Partial<RelayFacts>, string, string]>([
    ['it is', { status: 'PUBLISHED' }, 'published', 'done'],
    ['it was given up', { status: 'DEAD', unsettledBefore: first }, 'dead', 'act'],
    ['a lower version was given up', { unsettledBefore: first }, 'behind', 'act'],
    ['a lower version waits', { unsettledBefore: { ...first, status: 'PENDING' } }, 'behind', 'waits'],
    ['a lower version was given up, while all is paused', { unsettledBefore: first, pauses: [pause] }, 'behind', 'act'],
    ['its last send failed', { status: 'FAILED', retryCount: 2 }, 'failing', 'waits'],
    ['an operator has paused', { pauses: [pause], holders: [] }, 'paused', 'act'],
    ['no relay runs', { holders: [] }, 'no-relay', 'act'],
    ['a polling relay has it in hand', { status: 'PROCESSING', claimedBy: 'relay-a' }, 'claimed', 'waits'],
    ['it is its turn', {}, 'waiting', 'waits'],
    ['nobody knows the relay', { holders: null }, 'waiting', 'waits'],
  ])('because %s', (_why, facts, kind, need) => {
    const verdict = explainRelay({ ...pending, ...facts });
    expect([verdict.kind, needOf(verdict)]).toEqual([kind, need]);
  });
});

const facts: GroupFacts = {
  eventId: 'e3',
  version: 3,
  publishedAtMs: 1_000,
  position: { version: 2, startVersion: 0, state: 'open', startReason: null },
  settledAs: null,
  settledHere: null,
  parkedHere: null,
  parkedNext: null,
  watermarkMs: 500,
  mayHaveExpired: true,
};
const parked = (more: Partial<ParkedNote>): ParkedNote => ({
  eventId: 'e3',
  state: 'retry',
  attempts: 1,
  nextRetryAt: null,
  failure: null,
  ...more,
});
const at = (version: number, state: 'open' | 'blocked' = 'open') => ({ ...facts.position, version, state });

describe('why a group has not settled an event', () => {
  it.each<[string, Partial<GroupFacts>, string, string]>([
    ['it has', { settledAs: { outcome: 'applied', isEdited: false } }, 'settled', 'done'],
    ['it lies before its start', { position: { ...at(5), startVersion: 3 } }, 'before-start', 'done'],
    ['it has, and the record has expired', { position: at(3) }, 'settled-unrecorded', 'done'],
    ['its record is gone before its time', { position: at(3), mayHaveExpired: false }, 'settled-unrecorded', 'act'],
    ['another event was settled in its place', { settledHere: 'other', position: at(3) }, 'conflict', 'act'],
    ['another event is parked in its place', { parkedHere: parked({ eventId: 'other' }) }, 'conflict', 'act'],
    ['it is a dead letter', { parkedHere: parked({ state: 'dead' }) }, 'dead-letter', 'act'],
    ['it is tried again', { parkedHere: parked({}) }, 'retrying', 'waits'],
    [
      'a dead letter is before it',
      {
        parkedHere: parked({ state: 'behind' }),
        position: at(1, 'blocked'),
        parkedNext: parked({ eventId: 'e2', state: 'dead' }),
      },
      'behind',
      'act',
    ],
    [
      'one that is tried again is before it',
      { parkedHere: parked({ state: 'behind' }), position: at(1, 'blocked'), parkedNext: parked({ eventId: 'e2' }) },
      'behind',
      'waits',
    ],
    ['a lower version has not come', { parkedHere: parked({ state: 'gap' }), position: at(1) }, 'gap', 'waits'],
    ['it is not published', { publishedAtMs: null }, 'not-published', 'waits'],
    [
      'it has not come, and its aggregate is blocked',
      { position: at(1, 'blocked'), parkedNext: parked({ eventId: 'e2', state: 'dead' }) },
      'behind',
      'act',
    ],
    ['it has not come', {}, 'not-received', 'waits'],
    ['nothing is left of it', { watermarkMs: 1_001 }, 'lost', 'act'],
  ])('because %s', (_why, more, kind, need) => {
    const verdict = explainGroup({ ...facts, ...more });
    expect([verdict.kind, needOf(verdict)]).toEqual([kind, need]);
  });

  it('names the version that a gap lacks, and the event that blocks', () => {
    const gap = explainGroup({ ...facts, parkedHere: parked({ state: 'gap' }), position: at(1) });
    expect(gap).toEqual({ kind: 'gap', missingFrom: 2 });
    const blocked = { position: at(1, 'blocked'), parkedNext: parked({ eventId: 'e2', state: 'dead' }) };
    expect(explainGroup({ ...facts, ...blocked })).toMatchObject({
      isReceived: false,
      first: { version: 2, eventId: 'e2', status: 'dead' },
    });
  });
});
