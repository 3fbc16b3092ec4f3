import { describe, expect, test } from 'vitest';
import { aggregateKey, aggregateVersion, eventId } from './ids.js';
import {
  NO_POSITION,
  changesOf,
  sequence,
  type MessageContent,
  type SequencedMessage,
  type SequencerPosition,
  type SequencerView,
} from './sequencer.js';

const aggregate = aggregateKey({ source: 'orders', aggregateType: 'order', aggregateId: '1' });

const otherAggregate = aggregateKey({ source: 'orders', aggregateType: 'order', aggregateId: '2' });

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

const defect: MessageContent = { kind: 'defect', code: 'NP_DIGEST_MISMATCH', reason: 'altered' };

describe('the verdict on a message', () => {
  test.each<[string, SequencerView, SequencedMessage, string]>([
    [
      'at the start of the group is before the start',
      view({ version: 3, startVersion: 3 }),
      message(3),
      'before-start',
    ],
    [
      'below the start is before the start, even with another event settled there',
      view({ version: 3, startVersion: 3 }, { settledHere: other }),
      message(2),
      'before-start',
    ],
    [
      'at or below the position with its event in the inbox is a duplicate',
      view({ version: 5 }, settled5),
      message(5),
      'duplicate',
    ],
    [
      'at or below the position that nobody knows any more is a duplicate',
      view({ version: 5 }),
      message(2),
      'duplicate',
    ],
    ['at or below a blocked position is a duplicate', view(blockedAt4), message(4), 'duplicate'],
    [
      'with another event settled at its version is a version conflict',
      view({ version: 5 }, { settledHere: other }),
      message(5),
      'version-conflict',
    ],
    [
      'whose event was settled under another version is a version conflict',
      view({ version: 4 }, { settledAs: { aggregate, version: 3 } }),
      message(5),
      'version-conflict',
    ],
    [
      'whose event was settled for another aggregate is a version conflict',
      view({ version: 4 }, { settledAs: { aggregate: otherAggregate, version: 5 } }),
      message(5),
      'version-conflict',
    ],
    [
      'with another event parked at its version is a version conflict',
      view(blockedAt4, { parkedHere: { eventId: other, state: 'dead' } }),
      message(5),
      'version-conflict',
    ],
    [
      'next in line, settled before the position was lost, moves the position on',
      view({ version: 4 }, settled5),
      message(5),
      'advance',
    ],
    ['next in line, settled, moves even a blocked position on', view(blockedAt4, settled5), message(5), 'advance'],
    ['at a blocked position is behind', view(blockedAt4), message(6), 'behind'],
    ['next in line at a blocked position is behind', view(blockedAt4), message(5), 'behind'],
    [
      'next in line whose row is parked is behind, though the position says open',
      view({ version: 4 }, { parkedHere: { eventId: mine, state: 'dead' } }),
      message(5),
      'behind',
    ],
    ['that skips a version is a gap', view({ version: 4 }), message(6), 'gap'],
    ['of an unknown aggregate that is not its first is a gap', view({}), message(2), 'gap'],
    ['next in line with a defect is dead', view({ version: 4 }), message(5, { content: defect }), 'dead'],
    ['with a defect is a duplicate first', view({ version: 5 }), message(5, { content: defect }), 'duplicate'],
    ['with a defect waits for its turn', view({ version: 3 }), message(5, { content: defect }), 'gap'],
    ['next in line is applied', view({ version: 4 }), message(5), 'apply'],
    ['first of an unknown aggregate is applied', view({}), message(1), 'apply'],
    ['right behind the start is applied', view({ version: 7, startVersion: 7 }), message(8), 'apply'],
    ['without handler is ignored', view({ version: 4 }), message(5, { content: { kind: 'unhandled' } }), 'ignore'],
    ['that is a tombstone is skipped', view({ version: 4 }), message(5, { content: { kind: 'tombstone' } }), 'skip'],
    [
      'claimed from its parked row passes the blocked position',
      view(blockedAt4, { parkedHere: { eventId: mine, state: 'retry' } }),
      message(5, { claimed: true }),
      'apply',
    ],
    [
      'claimed too early is a gap',
      view(blockedAt4, { parkedHere: { eventId: mine, state: 'retry' } }),
      message(6, { claimed: true }),
      'gap',
    ],
    [
      'claimed but settled meanwhile is a duplicate',
      view({ version: 5 }, settled5),
      message(5, { claimed: true }),
      'duplicate',
    ],
  ])('%s', (_name, given, incoming, kind) => {
    expect(sequence(given, incoming).kind).toBe(kind);
  });

  test('names the first version that a gap lacks', () => {
    expect(sequence(view({ version: 4 }), message(9))).toEqual({ kind: 'gap', missingFrom: 5 });
  });

  test('carries the defect of a dead event', () => {
    expect(sequence(view({}), message(1, { content: defect }))).toEqual({
      kind: 'dead',
      code: 'NP_DIGEST_MISMATCH',
      reason: 'altered',
    });
  });
});

describe('a message that the group’s watermark passed long ago', () => {
  const dead = { kind: 'dead', code: 'NP_POSITION_LOST' };

  test('is dead when nothing is left of it, and blocks its aggregate at its turn', () => {
    const given = view({ version: 4 }, { isPassed: true });
    const verdict = sequence(given, message(5));
    expect(verdict).toMatchObject(dead);
    expect(changesOf(given, message(5), verdict)).toEqual([
      { kind: 'park', state: 'dead' },
      { kind: 'position', position: { ...NO_POSITION, ...blockedAt4 } },
    ]);
  });

  test.each(['open', 'blocked'] as const)(
    'is dead before its turn too, behind a position that is %s and stays so',
    (state) => {
      const given = view({ version: 2, state }, { isPassed: true });
      const verdict = sequence(given, message(5));
      expect(verdict).toMatchObject(dead);
      expect(changesOf(given, message(5), verdict)).toEqual([
        { kind: 'park', state: 'dead' },
        { kind: 'position', position: { ...NO_POSITION, version: 2, state } },
      ]);
    },
  );

  test('advances while the inbox knows it, and runs where an operator has it tried again', () => {
    expect(sequence(view({ version: 4 }, { ...settled5, isPassed: true }), message(5))).toEqual({ kind: 'advance' });
    const retried = view(blockedAt4, { isPassed: true, parkedHere: { eventId: mine, state: 'retry' } });
    expect(sequence(retried, message(5, { claimed: true }))).toEqual({ kind: 'apply' });
  });
});

describe('a corrupt message in the place of one that verifies', () => {
  const corrupt = { eventId: other, state: 'dead', isCorrupt: true } as const;
  const open5 = { kind: 'position', position: { ...NO_POSITION, version: 5 } } as const;

  test.each<[string, SequencerView, SequencedMessage, ReturnType<typeof sequence>, readonly unknown[]]>([
    [
      'yields when it is its turn',
      view(blockedAt4, { parkedHere: corrupt }),
      message(5),
      { kind: 'apply' },
      [{ kind: 'set-occupant-aside' }, { kind: 'unpark' }, { kind: 'settle', outcome: 'applied' }, open5],
    ],
    [
      'yields under the same event’s id too',
      view(blockedAt4, { parkedHere: { ...corrupt, eventId: mine } }),
      message(5),
      { kind: 'apply' },
      [{ kind: 'set-occupant-aside' }, { kind: 'unpark' }, { kind: 'settle', outcome: 'applied' }, open5],
    ],
    [
      'yields while both wait for a gap',
      view({ version: 2 }, { parkedHere: { ...corrupt, state: 'gap' } }),
      message(5),
      { kind: 'gap', missingFrom: aggregateVersion(3) },
      [
        { kind: 'set-occupant-aside' },
        { kind: 'park', state: 'gap', replaces: true },
        { kind: 'position', position: { ...NO_POSITION, version: 2 } },
      ],
    ],
    [
      'yields behind a parked one',
      view({ version: 2, state: 'blocked' }, { parkedHere: { ...corrupt, state: 'behind' } }),
      message(5),
      { kind: 'behind' },
      [
        { kind: 'set-occupant-aside' },
        { kind: 'park', state: 'behind', replaces: true },
        { kind: 'position', position: { ...NO_POSITION, version: 2, state: 'blocked' } },
      ],
    ],
    [
      'does not yield to another corrupt one',
      view(blockedAt4, { parkedHere: { ...corrupt, eventId: mine } }),
      message(5, { content: defect }),
      { kind: 'behind' },
      [],
    ],
    [
      'is not replaced by its own claim',
      view(blockedAt4, { parkedHere: { ...corrupt, eventId: mine, state: 'retry' } }),
      message(5, { content: defect, claimed: true }),
      { kind: 'dead', code: 'NP_DIGEST_MISMATCH', reason: 'altered' },
      [
        { kind: 'park', state: 'dead' },
        { kind: 'position', position: { ...NO_POSITION, ...blockedAt4 } },
      ],
    ],
  ])('%s', (_name, given, incoming, verdict, changes) => {
    expect(sequence(given, incoming)).toEqual(verdict);
    expect(changesOf(given, incoming, verdict)).toEqual(changes);
  });

  test('leaves its place to a message whose handler fails, which is then parked in its stead', () => {
    const given = view(blockedAt4, { parkedHere: corrupt });
    expect(changesOf(given, message(5), { kind: 'retry' })).toEqual([
      { kind: 'set-occupant-aside' },
      { kind: 'park', state: 'retry', replaces: true },
      { kind: 'position', position: { ...NO_POSITION, ...blockedAt4 } },
    ]);
  });
});
