import { describe, expect, test } from 'vitest';
import { aggregateKey, aggregateVersion, eventId } from './ids.js';
import {
  NO_POSITION,
  changesOf,
  type Outcome,
  type SequencedMessage,
  type SequencerPosition,
  type SequencerView,
} from './sequencer.js';

const aggregate = aggregateKey({ source: 'orders', aggregateType: 'order', aggregateId: '1' });

const mine = eventId('mine');

const other = eventId('other');

function message(version: number, more: Partial<SequencedMessage> = {}): SequencedMessage {
  return {
    eventId: mine,
    aggregate,
    version: aggregateVersion(version),
    content: { kind: 'event' },
    claimed: false,
    ...more,
  };
}

function view(
  position: Partial<SequencerPosition>,
  more: Partial<Omit<SequencerView, 'position'>> = {},
): SequencerView {
  return {
    position: { ...NO_POSITION, ...position },
    settledAs: null,
    settledHere: null,
    parkedHere: null,
    parkedNext: null,
    ...more,
  };
}

const blockedAt4 = { version: 4, state: 'blocked' } as const;

const settled5 = { settledAs: { aggregate, version: 5 }, settledHere: mine };

describe('the writes of an outcome', () => {
  const retry = { eventId: mine, state: 'retry' } as const;
  const waiting = { eventId: other, state: 'behind' } as const;
  const open = (version: number): unknown => ({
    kind: 'position',
    position: { version, startVersion: 0, state: 'open' },
  });
  const blocked = (version: number): unknown => ({
    kind: 'position',
    position: { version, startVersion: 0, state: 'blocked' },
  });
  const conflict: Outcome = { kind: 'version-conflict', reason: 'two' };

  test.each<[string, SequencerView, SequencedMessage, Outcome, unknown[]]>([
    [
      'apply settles and moves the position on',
      view({ version: 4 }),
      message(5),
      { kind: 'apply' },
      [{ kind: 'settle', outcome: 'applied' }, open(5)],
    ],
    [
      'apply hands the turn to the row parked right behind',
      view({ version: 4 }, { parkedNext: waiting }),
      message(5),
      { kind: 'apply' },
      [{ kind: 'settle', outcome: 'applied' }, blocked(5), { kind: 'make-due', version: 6 }],
    ],
    [
      'apply of a claimed row removes it',
      view(blockedAt4, { parkedHere: retry }),
      message(5, { claimed: true }),
      { kind: 'apply' },
      [{ kind: 'settle', outcome: 'applied' }, { kind: 'unpark' }, open(5)],
    ],
    [
      'ignore settles as ignored',
      view({ version: 4 }),
      message(5),
      { kind: 'ignore' },
      [{ kind: 'settle', outcome: 'ignored' }, open(5)],
    ],
    [
      'skip settles as skipped',
      view({ version: 4 }),
      message(5),
      { kind: 'skip' },
      [{ kind: 'settle', outcome: 'skipped' }, open(5)],
    ],
    [
      'advance has no effect but the position',
      view({ version: 4 }, { ...settled5, parkedNext: waiting }),
      message(5),
      { kind: 'advance' },
      [blocked(5), { kind: 'make-due', version: 6 }],
    ],
    ['before-start writes nothing', view({ version: 9, startVersion: 9 }), message(5), { kind: 'before-start' }, []],
    [
      'before-start removes a claimed row',
      view({ version: 9, startVersion: 9 }),
      message(5, { claimed: true }),
      { kind: 'before-start' },
      [{ kind: 'unpark' }],
    ],
    [
      'a duplicate is counted',
      view({ version: 5 }, settled5),
      message(5),
      { kind: 'duplicate' },
      [{ kind: 'count-duplicate' }],
    ],
    [
      'a duplicate that the inbox has forgotten is not counted',
      view({ version: 5 }),
      message(5),
      { kind: 'duplicate' },
      [],
    ],
    [
      'a claimed duplicate removes its row',
      view({ version: 5 }, settled5),
      message(5, { claimed: true }),
      { kind: 'duplicate' },
      [{ kind: 'unpark' }],
    ],
    [
      'behind parks and touches the position',
      view(blockedAt4),
      message(7),
      { kind: 'behind' },
      [{ kind: 'park', state: 'behind' }, blocked(4)],
    ],
    ['behind leaves a parked row alone', view(blockedAt4, { parkedHere: retry }), message(5), { kind: 'behind' }, []],
    [
      'behind blocks a position that forgot its parked row',
      view({ version: 4 }, { parkedHere: retry }),
      message(5),
      { kind: 'behind' },
      [blocked(4)],
    ],
    [
      'behind wakes a forgotten row',
      view({ version: 4 }, { parkedHere: { eventId: mine, state: 'gap' } }),
      message(5),
      { kind: 'behind' },
      [blocked(4), { kind: 'make-due', version: 5 }],
    ],
    [
      'a gap parks and touches the position without blocking it',
      view({ version: 4 }),
      message(7),
      { kind: 'gap', missingFrom: aggregateVersion(5) },
      [{ kind: 'park', state: 'gap' }, open(4)],
    ],
    [
      'a gap leaves a parked row alone',
      view({ version: 4 }, { parkedHere: { eventId: mine, state: 'gap' } }),
      message(7),
      { kind: 'gap', missingFrom: aggregateVersion(5) },
      [],
    ],
    [
      'a claim that came too early is parked again',
      view(blockedAt4, { parkedHere: retry }),
      message(7, { claimed: true }),
      { kind: 'gap', missingFrom: aggregateVersion(5) },
      [{ kind: 'park', state: 'behind' }, blocked(4)],
    ],
    [
      'dead parks and blocks',
      view({ version: 4 }),
      message(5),
      { kind: 'dead', code: 'NP_DIGEST_MISMATCH', reason: '' },
      [{ kind: 'park', state: 'dead' }, blocked(4)],
    ],
    [
      'retry parks and blocks',
      view({ version: 4 }),
      message(5),
      { kind: 'retry' },
      [{ kind: 'park', state: 'retry' }, blocked(4)],
    ],
    [
      'a version conflict leaves the position',
      view({ version: 5 }, { settledHere: other }),
      message(5),
      conflict,
      [{ kind: 'set-aside', reason: 'two' }],
    ],
    [
      'a claimed version conflict frees its place',
      view(blockedAt4, { parkedHere: retry, settledHere: other }),
      message(5, { claimed: true }),
      conflict,
      [{ kind: 'set-aside', reason: 'two' }, { kind: 'unpark' }, open(4)],
    ],
  ])('%s', (_name, given, incoming, outcome, changes) => {
    expect(changesOf(given, incoming, outcome)).toEqual(changes);
  });
});
