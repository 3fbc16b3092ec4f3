/**
 * Explores every interleaving of a few transactions on one aggregate: live messages (in any order, some delivered twice, some corrupt),
 * claims of parked rows, handlers that fail, and a lost position. A transaction decides on what it read when it began;
 * it commits only if nothing that it writes has been written since, else it is decided anew.
 */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { aggregateKey, aggregateVersion, eventId } from './ids.js';
import {
  NO_POSITION,
  changesOf,
  sequence,
  type MessageContent,
  type Outcome,
  type SequencedMessage,
  type SequencerChange,
  type SequencerParkedState,
  type SequencerPosition,
  type SequencerView,
} from './sequencer.js';

const aggregate = aggregateKey({ source: 'orders', aggregateType: 'order', aggregateId: '1' });
const idOf = (version: number): ReturnType<typeof eventId> => eventId(`e${version}`);

interface Row {
  readonly state: SequencerParkedState;
  readonly claimed: boolean;
  readonly corrupt: boolean;
}

interface World {
  readonly position: SequencerPosition | null;
  /** Versions in the order in which their effects were committed. */
  readonly settled: readonly number[];
  readonly parked: Readonly<Record<number, Row>>;
  /** Versions; below zero, a copy that is not what was written. */
  readonly undelivered: readonly number[];
  readonly running: readonly Transaction[];
  readonly failuresLeft: number;
  readonly lossesLeft: number;
  readonly hasLostPosition: boolean;
}

interface Transaction {
  readonly version: number;
  readonly claimed: boolean;
  readonly corrupt: boolean;
  readonly changes: readonly SequencerChange[];
  /** A document that it writes was written by another since it began. */
  readonly lost: boolean;
}

type Rules = (changes: readonly SequencerChange[], outcome: Outcome) => readonly SequencerChange[];
const asWritten: Rules = (changes) => changes;

function viewOf(world: World, version: number): SequencerView {
  const isSettled = world.settled.includes(version);
  const row = (at: number): SequencerView['parkedHere'] => {
    const found = world.parked[at];
    return found === undefined ? null : { eventId: idOf(at), state: found.state, isCorrupt: found.corrupt };
  };
  return {
    position: world.position ?? NO_POSITION,
    settledAs: isSettled ? { aggregate, version } : null,
    settledHere: isSettled ? idOf(version) : null,
    parkedHere: row(version),
    parkedNext: row(version + 1),
  };
}

function documentsOf(transaction: Transaction): string[] {
  return transaction.changes.map((change) => {
    switch (change.kind) {
      case 'position':
        return 'position';
      case 'make-due':
        return `parked ${change.version}`;
      case 'park':
      case 'unpark':
        return `parked ${transaction.version}`;
      case 'settle':
      case 'count-duplicate':
      case 'set-aside':
      case 'set-occupant-aside':
        return `inbox ${transaction.version}`;
    }
  });
}

function commit(world: World, transaction: Transaction): World {
  let { position, settled } = world;
  const parked = { ...world.parked };
  for (const change of transaction.changes) {
    switch (change.kind) {
      case 'settle':
        settled = [...settled, transaction.version];
        break;
      case 'position':
        position = change.position;
        break;
      case 'park':
        parked[transaction.version] = { state: change.state, claimed: false, corrupt: transaction.corrupt };
        break;
      case 'unpark':
        Reflect.deleteProperty(parked, transaction.version);
        break;
      case 'make-due': {
        const row = parked[change.version];
        if (row !== undefined && row.state !== 'dead')
          parked[change.version] = { ...row, state: 'retry', claimed: false };
        break;
      }
      case 'count-duplicate':
      case 'set-aside':
      case 'set-occupant-aside':
        break;
    }
  }
  const written = new Set(documentsOf(transaction));
  const running = world.running.map((other) =>
    documentsOf(other).some((document) => written.has(document)) ? { ...other, lost: true } : other,
  );
  return { ...world, position, settled, parked, running };
}

const altered: MessageContent = { kind: 'defect', code: 'NP_DIGEST_MISMATCH', reason: 'altered' };

function begin(world: World, work: { version: number; claimed: boolean; corrupt: boolean }, rules: Rules): World[] {
  const view = viewOf(world, work.version);
  const message: SequencedMessage = {
    eventId: idOf(work.version),
    aggregate,
    version: aggregateVersion(work.version),
    content: work.corrupt ? altered : { kind: 'event' },
    claimed: work.claimed,
  };
  const verdict = sequence(view, message);
  const next = (outcome: Outcome): Transaction => ({
    ...work,
    changes: rules(changesOf(view, message, outcome), outcome),
    lost: false,
  });
  const worlds = [{ ...world, running: [...world.running, next(verdict)] }];
  if (verdict.kind === 'apply' && world.failuresLeft > 0) {
    worlds.push({
      ...world,
      failuresLeft: world.failuresLeft - 1,
      running: [...world.running, next({ kind: 'retry' })],
    });
  }
  return worlds;
}

function stepsFrom(world: World, rules: Rules): World[] {
  const worlds: World[] = [];
  const free = world.running.length < 2;
  for (const [index, version] of world.undelivered.entries()) {
    if (free) {
      const undelivered = world.undelivered.filter((_, at) => at !== index);
      worlds.push(
        ...begin(
          { ...world, undelivered },
          { version: Math.abs(version), claimed: false, corrupt: version < 0 },
          rules,
        ),
      );
    }
  }
  for (const [version, row] of Object.entries(world.parked)) {
    if (free && row.state === 'retry' && !row.claimed) {
      const parked = { ...world.parked, [version]: { ...row, claimed: true } };
      const running = world.running.map((other) =>
        documentsOf(other).includes(`parked ${version}`) ? { ...other, lost: true } : other,
      );
      worlds.push(...begin({ ...world, parked, running }, { ...row, version: Number(version), claimed: true }, rules));
    }
  }
  for (const [index, transaction] of world.running.entries()) {
    const rest = { ...world, running: world.running.filter((_, at) => at !== index) };
    if (!transaction.lost) worlds.push(commit(rest, transaction));
    else if (!transaction.claimed || isStillClaimed(rest.parked[transaction.version], transaction)) {
      worlds.push(...begin(rest, transaction, rules));
    } else worlds.push(rest);
  }
  if (world.lossesLeft > 0 && world.position !== null) {
    const running = world.running.map((other) =>
      documentsOf(other).includes('position') ? { ...other, lost: true } : other,
    );
    const undelivered = [...new Set([...world.undelivered, ...world.settled])].sort();
    worlds.push({
      ...world,
      position: null,
      running,
      undelivered,
      lossesLeft: world.lossesLeft - 1,
      hasLostPosition: true,
    });
  }
  return worlds;
}

function isStillClaimed(row: Row | undefined, { corrupt }: Transaction): boolean {
  return row?.claimed === true && row.corrupt === corrupt;
}

interface Exploration {
  readonly worlds: number;
  readonly ends: number;
  readonly broken: ReadonlySet<string>;
}

function explore(start: World, rules: Rules): Exploration {
  const seen = new Set<string>();
  const stack = [start];
  const broken = new Set<string>();
  let ends = 0;
  for (let world = stack.pop(); world !== undefined; world = stack.pop()) {
    const key = JSON.stringify({ ...world, running: world.running.map((one) => JSON.stringify(one)).sort() });
    if (seen.has(key)) continue;
    seen.add(key);
    for (const complaint of complaintsAbout(world)) broken.add(complaint);
    const steps = stepsFrom(world, rules);
    if (steps.length === 0) {
      ends += 1;
      if (Object.keys(world.parked).length > 0) broken.add('stuck');
      if (new Set(start.undelivered.map(Math.abs)).size !== world.settled.length) broken.add('lost');
      if (world.position?.state === 'blocked') broken.add('blocked by nothing');
    }
    stack.push(...steps);
  }
  return { worlds: seen.size, ends, broken };
}

function complaintsAbout(world: World): string[] {
  const complaints: string[] = [];
  if (world.settled.some((version, index) => version !== index + 1)) complaints.push('doubled or out of order');
  if (world.position === null) return complaints;
  const { version, state } = world.position;
  if (Object.keys(world.parked).some((parked) => Number(parked) <= version)) complaints.push('parked though settled');
  const nextIsParked = world.parked[version + 1] !== undefined;
  if (nextIsParked !== (state === 'blocked') && !world.hasLostPosition) complaints.push('blocked and parked disagree');
  return complaints;
}

function start(more: Partial<World>): World {
  return {
    position: null,
    settled: [],
    parked: {},
    undelivered: [1, 2, 3],
    running: [],
    failuresLeft: 0,
    lossesLeft: 0,
    hasLostPosition: false,
    ...more,
  };
}

const histories: [string, World][] = [
  ['three versions, each delivered twice', start({ undelivered: [1, 1, 2, 2, 3, 3] })],
  ['four versions and two failures', start({ undelivered: [1, 2, 3, 4], failuresLeft: 2 })],
  ['three versions, redelivered, and a failure', start({ undelivered: [1, 2, 2, 3, 3], failuresLeft: 1 })],
  ['three versions, and a corrupt copy of each of two', start({ undelivered: [1, -1, 2, -2, 3] })],
  ['three versions, a corrupt copy and a failure', start({ undelivered: [1, 2, -2, 3], failuresLeft: 1 })],
  ['three versions, a failure, and the position lost once', start({ failuresLeft: 1, lossesLeft: 1 })],
];

describe('over every interleaving', () => {
  test.each(histories)('%s settle once, in order, and leave nothing parked', (_name, world) => {
    const { broken, ends, worlds } = explore(world, asWritten);
    expect([...broken]).toEqual([]);
    expect(ends).toBeGreaterThan(0);
    expect(worlds).toBeGreaterThan(100);
  });

  test('a parking transaction that does not write the position leaves an event parked for ever', () => {
    const withoutTouch: Rules = (changes, outcome) =>
      outcome.kind === 'gap' || outcome.kind === 'behind'
        ? changes.filter((change) => change.kind !== 'position')
        : changes;
    expect(explore(start({ failuresLeft: 1 }), withoutTouch).broken).toContain('stuck');
  });

  test('a settlement that does not hand on the turn leaves an event parked for ever', () => {
    const withoutBaton: Rules = (changes) => changes.filter((change) => change.kind !== 'make-due');
    expect(explore(start({}), withoutBaton).broken).toContain('stuck');
  });

  test('a failure that does not block lets the next message overtake the retry', () => {
    const withoutBlock: Rules = (changes, outcome) =>
      outcome.kind === 'retry' ? changes.filter((change) => change.kind !== 'position') : changes;
    expect(explore(start({ failuresLeft: 1 }), withoutBlock).broken).toContain('blocked and parked disagree');
  });

  test('longer histories hold along random walks', () => {
    const walk = fc.record({
      undelivered: fc.shuffledSubarray([1, 2, 3, 4, 5, 6, 7, 1, 3, 5, 7], { minLength: 11 }),
      failuresLeft: fc.nat(4),
      lossesLeft: fc.nat(2),
      choices: fc.infiniteStream(fc.nat(999)),
    });
    fc.assert(
      fc.property(walk, ({ choices, ...more }) => {
        let world = start(more);
        for (const choice of choices) {
          expect(complaintsAbout(world)).toEqual([]);
          const steps = stepsFrom(world, asWritten);
          const next = steps[choice % Math.max(1, steps.length)];
          if (next === undefined) break;
          world = next;
        }
        expect(world.settled).toEqual([1, 2, 3, 4, 5, 6, 7]);
        expect(world.parked).toEqual({});
      }),
      { numRuns: 300 },
    );
  });
});
