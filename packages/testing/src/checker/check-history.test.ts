import { describe, expect, it } from 'vitest';
import { checkHistory } from './check-history.js';
import type { CommittedRecord, GroupHistory, History, LandingRecord } from './history.js';

/** a#1 a#2 a#3 b#1: written `a1`, `a2` … */
const committed: readonly CommittedRecord[] = ['a1', 'a2', 'a3', 'b1'].map(recordOf);
const landings: readonly LandingRecord[] = ['a1', 'b1', 'a2', 'a3'].map((eventId) => ({
  eventId,
  form: 'original',
  digest: `digest ${eventId}`,
}));
const group: GroupHistory = {
  group: 'points',
  effects: effects('a1', 'a2', 'b1', 'a3'),
  settled: applied('a1', 'a2', 'a3', 'b1'),
  parked: [],
};
const good: History = { atRest: true, committed, landings, unpublished: [], groups: [group] };

/** The relay holds a2 as DEAD, and a3 behind it; neither has landed. */
const heldByDeadRow: History = {
  ...good,
  landings: landings.filter(({ eventId }) => eventId === 'a1' || eventId === 'b1'),
  unpublished: [
    { eventId: 'a2', status: 'DEAD' },
    { eventId: 'a3', status: 'PENDING' },
  ],
};

describe('a good history', () => {
  it('has no violation', () => {
    expect(checkHistory(good)).toEqual([]);
  });

  it('may hold landings that are repeated, in any order behind their first', () => {
    const repeated = [...landings, landings[0]!, landings[3]!, landings[2]!];
    expect(checkHistory({ ...good, landings: repeated })).toEqual([]);
  });

  it('may hold ignored and skipped events without effect, and landed tombstones with a digest of their own', () => {
    const settled = [
      ...applied('a1', 'b1'),
      { eventId: 'a2', outcome: 'skipped' as const },
      { eventId: 'a3', outcome: 'ignored' as const },
    ];
    const tombstone: LandingRecord = { eventId: 'a2', form: 'tombstone', digest: 'digest of the tombstone' };
    const withTombstone = landings.map((landing) => (landing.eventId === 'a2' ? tombstone : landing));
    const groups = [{ ...group, effects: effects('a1', 'b1'), settled }];
    expect(checkHistory({ ...good, landings: withTombstone, groups })).toEqual([]);
  });

  it('may end with a dead letter and whatever is parked behind it', () => {
    const parked = [
      { eventId: 'a2', state: 'dead' as const },
      { eventId: 'a3', state: 'behind' as const },
    ];
    expect(check({ effects: effects('a1', 'b1'), settled: applied('a1', 'b1'), parked })).toEqual([]);
  });

  it('may end with a DEAD row and whatever is unpublished behind it', () => {
    const history: History = {
      ...heldByDeadRow,
      groups: [{ ...group, effects: effects('a1', 'b1'), settled: applied('a1', 'b1') }],
    };
    expect(checkHistory(history)).toEqual([]);
  });

  it('may hold a parked copy of an event that is unpublished itself, behind a DEAD row', () => {
    const history: History = {
      ...heldByDeadRow,
      groups: [
        {
          ...group,
          effects: effects('a1', 'b1'),
          settled: applied('a1', 'b1'),
          parked: [{ eventId: 'a3', state: 'gap' }],
        },
      ],
    };
    expect(checkHistory(history)).toEqual([]);
  });

  it('may lack what is before the start of a group, and what is on topics that it does not read', () => {
    const groups = [
      { ...group, startVersions: { a: 2, b: 1 }, effects: effects('a3'), settled: applied('a3') },
      { ...group, topics: ['b-events'], effects: effects('b1'), settled: applied('b1') },
    ];
    expect(checkHistory({ ...good, groups })).toEqual([]);
  });

  it('may have anything under way before it is at rest', () => {
    const history: History = {
      ...good,
      atRest: false,
      landings: landings.slice(0, 2),
      unpublished: [{ eventId: 'a2', status: 'PENDING' }],
      groups: [
        { ...group, effects: effects('b1'), settled: applied('b1'), parked: [{ eventId: 'a1', state: 'retry' }] },
      ],
    };
    expect(checkHistory(history)).toEqual([]);
  });
});

describe('of the outbox, the checker finds', () => {
  it('a hole in the versions of an aggregate: lost', () => {
    const history = { ...good, committed: committed.filter(({ eventId }) => eventId !== 'a2') };
    expect(kinds(checkHistory(history))).toContain('lost');
  });

  it('one version given to two events: doubled', () => {
    const history = { ...good, committed: [...committed, { ...recordOf('a2'), eventId: 'rival' }] };
    expect(checkHistory(history)).toContainEqual(expect.objectContaining({ kind: 'doubled', eventId: 'rival' }));
  });

  it('a row that is unpublished at rest with no DEAD row before it: stuck', () => {
    const history: History = {
      ...good,
      unpublished: [
        { eventId: 'a2', status: 'FAILED' },
        { eventId: 'a3', status: 'DEAD' },
      ],
    };
    expect(checkHistory(history)).toEqual([expect.objectContaining({ kind: 'stuck', eventId: 'a2' })]);
  });

  it('a row whose transaction did not commit: phantom', () => {
    const history: History = { ...good, unpublished: [{ eventId: 'x1', status: 'PENDING' }] };
    expect(checkHistory(history)).toEqual([expect.objectContaining({ kind: 'phantom', eventId: 'x1' })]);
  });
});

describe('of the broker, the checker finds', () => {
  it('an event that never landed though it is not unpublished: lost', () => {
    const history = { ...good, landings: landings.filter(({ eventId }) => eventId !== 'a3') };
    expect(checkHistory(history)).toEqual([expect.objectContaining({ kind: 'lost', eventId: 'a3' })]);
  });

  it('a landing before that of the version before it: out of order', () => {
    const history = { ...good, landings: [landings[2]!, landings[0]!, landings[1]!, landings[3]!] };
    expect(checkHistory(history)).toEqual([expect.objectContaining({ kind: 'out of order', eventId: 'a2' })]);
  });

  it('a landing of what was never committed: phantom', () => {
    const history: History = { ...good, landings: [...landings, { eventId: 'x1', form: 'original' }] };
    expect(checkHistory(history)).toEqual([expect.objectContaining({ kind: 'phantom', eventId: 'x1' })]);
  });

  it('a landing with another digest: altered', () => {
    const history: History = { ...good, landings: [...landings, { ...landings[0]!, digest: 'other' }] };
    expect(checkHistory(history)).toEqual([expect.objectContaining({ kind: 'altered', eventId: 'a1' })]);
  });
});

describe('of a group, the checker finds', () => {
  it('an event that is neither settled nor parked: lost', () => {
    const found = check({ effects: effects('a1', 'a2', 'b1'), settled: applied('a1', 'a2', 'b1') });
    expect(found).toEqual([expect.objectContaining({ kind: 'lost', eventId: 'a3', group: 'points' })]);
  });

  it('an event that counts as applied without an effect: lost', () => {
    expect(check({ effects: effects('a1', 'a2', 'b1') })).toEqual([
      expect.objectContaining({ kind: 'lost', eventId: 'a3' }),
    ]);
  });

  it('an effect that happened twice: doubled', () => {
    expect(check({ effects: effects('a1', 'a2', 'b1', 'a2', 'a3') })).toEqual([
      expect.objectContaining({ kind: 'doubled', eventId: 'a2' }),
    ]);
  });

  it('an event settled twice: doubled', () => {
    const settled = [...group.settled, { eventId: 'a2', outcome: 'skipped' as const }];
    expect(kinds(check({ settled }))).toContain('doubled');
  });

  it('effects of one aggregate in the wrong order: out of order', () => {
    expect(check({ effects: effects('a1', 'a3', 'b1', 'a2') })).toEqual([
      expect.objectContaining({ kind: 'out of order', eventId: 'a2' }),
    ]);
  });

  it('a version settled though the one before it is not: out of order', () => {
    const found = check({
      effects: effects('a1', 'a3', 'b1'),
      settled: applied('a1', 'a3', 'b1'),
      parked: [{ eventId: 'a2', state: 'dead' }],
    });
    expect(found).toEqual([expect.objectContaining({ kind: 'out of order', eventId: 'a3' })]);
  });

  it('an effect of what was never committed: phantom', () => {
    expect(kinds(check({ effects: [...group.effects, { eventId: 'x1' }] }))).toContain('phantom');
  });

  it('an effect without an outcome, or with another than applied: phantom', () => {
    const settled = [...applied('a1', 'a2', 'b1'), { eventId: 'a3', outcome: 'skipped' as const }];
    expect(check({ settled })).toEqual([expect.objectContaining({ kind: 'phantom', eventId: 'a3' })]);
  });

  it('something settled that was never committed: phantom', () => {
    const settled = [...group.settled, { eventId: 'x1', outcome: 'ignored' as const }];
    expect(check({ settled })).toEqual([expect.objectContaining({ kind: 'phantom', eventId: 'x1' })]);
  });

  it('a parked event at rest with no dead letter before it: stuck', () => {
    const found = check({
      effects: effects('a1', 'b1'),
      settled: applied('a1', 'b1'),
      parked: [
        { eventId: 'a2', state: 'retry' },
        { eventId: 'a3', state: 'dead' },
      ],
    });
    expect(found).toEqual([expect.objectContaining({ kind: 'stuck', eventId: 'a2' })]);
  });

  it('a settled event that is still parked: stuck', () => {
    expect(check({ parked: [{ eventId: 'a2', state: 'dead' }] })).toEqual([
      expect.objectContaining({ kind: 'stuck', eventId: 'a2' }),
    ]);
  });

  it('an effect with another digest than was written: altered', () => {
    const altered = group.effects.map((effect) => (effect.eventId === 'a2' ? { ...effect, digest: 'other' } : effect));
    expect(check({ effects: altered })).toEqual([expect.objectContaining({ kind: 'altered', eventId: 'a2' })]);
  });
});

function recordOf(eventId: string): CommittedRecord {
  const aggregate = eventId.slice(0, 1);
  return {
    eventId,
    aggregate,
    version: Number(eventId.slice(1)),
    digest: `digest ${eventId}`,
    topic: `${aggregate}-events`,
  };
}

function effects(...ids: readonly string[]): GroupHistory['effects'] {
  return ids.map((eventId) => ({ eventId, digest: `digest ${eventId}` }));
}

function applied(...ids: readonly string[]): GroupHistory['settled'] {
  return ids.map((eventId) => ({ eventId, outcome: 'applied' }));
}

function check(changes: Partial<GroupHistory>): ReturnType<typeof checkHistory> {
  return checkHistory({ ...good, groups: [{ ...group, ...changes }] });
}

function kinds(violations: ReturnType<typeof checkHistory>): readonly string[] {
  return violations.map(({ kind }) => kind);
}
