import { aggregateKey, aggregateVersion, eventId, isNightporterError, type Clock } from '@nightporter/protocol';
import { MongoNetworkError, MongoServerError } from 'mongodb';
import { describe, expect, it } from 'vitest';
import type { WorkOutcome } from './attempt.js';
import { ConflictLanes } from './conflict-lanes.js';
import type { CommitAnswer } from './failures.js';
import { TransactionRun } from './run-transaction.js';
import type { Receipt, Testimony } from './witness.js';

const identity = { source: 's', aggregateType: 't', aggregateId: '1' };
const receipt: Receipt = {
  ...identity,
  eventId: eventId('e1'),
  aggregate: aggregateKey(identity),
  aggregateVersion: aggregateVersion(1),
};

const conflict = new MongoServerError({ message: 'conflict', code: 112, errorLabels: ['TransientTransactionError'] });
const gone = new MongoServerError({ message: 'gone', code: 251, errorLabels: ['TransientTransactionError'] });
const cut = new MongoNetworkError('cut');

const ready = (result: string, receipts = [receipt]): WorkOutcome<string> => ({ kind: 'ready', result, receipts });
const rolledBack = (error: unknown, emitError?: unknown): WorkOutcome<string> => ({
  kind: 'rolled-back',
  error,
  emitError,
  contested: null,
});
const committed: CommitAnswer = { kind: 'committed' };
const refused: CommitAnswer = { kind: 'refused', error: gone };
const unanswered: CommitAnswer = { kind: 'unanswered', error: cut };

interface Script {
  /** One for each attempt; the last one repeats. A work that `hangs` is never done. */
  readonly works: readonly (WorkOutcome<string> | 'hangs')[];
  readonly commits?: readonly CommitAnswer[];
  readonly testimonies?: readonly (Testimony | Error)[];
}

/** Runs a transaction against a script, on a clock that jumps over every pause. */
async function play({ works, commits = [], testimonies = [] }: Script): Promise<{
  readonly outcome: unknown;
  readonly log: readonly string[];
}> {
  const log: string[] = [];
  let nowMs = 0;
  const clock: Clock = {
    now: () => nowMs,
    after: (delayMs, run) => {
      const timer = setImmediate(() => {
        nowMs += delayMs;
        run();
      });
      return () => {
        clearImmediate(timer);
      };
    },
  };
  const next = <Item>(items: readonly Item[], taken: number): Item => {
    const item = items[Math.min(taken, items.length - 1)];
    if (item === undefined) throw new Error('the script has no such line');
    return item;
  };
  const count = (name: string): number => log.filter((entry) => entry === name).length;
  const lanes = new ConflictLanes(clock);
  const run = new TransactionRun<string>({
    begin: () => ({
      work: () => {
        const outcome = next(works, count('work'));
        log.push('work');
        return outcome === 'hangs' ? new Promise<never>(() => undefined) : Promise.resolve(outcome);
      },
      commit: () => {
        const answer = next(commits, count('commit'));
        log.push('commit');
        return Promise.resolve(answer);
      },
      end: () => {
        log.push('end');
        return next(works, count('work') - 1) === 'hangs' ? new Promise<never>(() => undefined) : Promise.resolve();
      },
    }),
    askLedger: () => {
      const testimony = next(testimonies, count('ask'));
      log.push('ask');
      return testimony instanceof Error ? Promise.reject(testimony) : Promise.resolve(testimony);
    },
    world: { clock, random: () => 0.5 },
    lanes,
    retryMs: 1_000,
    workMs: 1_000,
  });
  const outcome: unknown = await run.run().catch((error: unknown) => error);
  expect(count('end')).toBe(count('work'));
  expect(lanes.size).toBe(0);
  return { outcome, log: log.filter((entry) => entry !== 'end') };
}

function codeOf(outcome: unknown): unknown {
  return isNightporterError(outcome) ? outcome.code : outcome;
}

describe('a transaction', () => {
  it('is over with its first commit', async () => {
    const { outcome, log } = await play({ works: [ready('a')], commits: [committed] });
    expect(outcome).toBe('a');
    expect(log).toEqual(['work', 'commit']);
  });

  it('runs again after a conflict, and gives the result of the run that committed', async () => {
    const { outcome, log } = await play({
      works: [rolledBack(conflict), rolledBack(cut), ready('third')],
      commits: [committed],
    });
    expect(outcome).toBe('third');
    expect(log).toEqual(['work', 'work', 'work', 'commit']);
  });

  it('throws what the business threw, at once', async () => {
    const error = new Error('no stock');
    const { outcome, log } = await play({ works: [rolledBack(error)] });
    expect(outcome).toBe(error);
    expect(log).toEqual(['work']);
  });

  it('runs again where the business replaced the conflict that an emit had told it of', async () => {
    const { outcome } = await play({
      works: [rolledBack(new Error('could not save'), conflict), ready('second')],
      commits: [committed],
    });
    expect(outcome).toBe('second');
  });

  it('gives up when conflicts outlast its time, and says that nothing is committed', async () => {
    const { outcome } = await play({ works: [rolledBack(conflict)] });
    expect(codeOf(outcome)).toBe('NP_TRANSACTION_CONFLICT');
    expect(String(outcome)).toMatch(/nothing is committed/);
  });

  it('gives up when the database stays away, and says that nothing is committed', async () => {
    const { outcome } = await play({ works: [rolledBack(cut)] });
    expect(codeOf(outcome)).toBe('NP_STORE_UNAVAILABLE');
    expect(String(outcome)).toMatch(/nothing is committed/);
  });

  it('gives up soon when the server loses it in every run: an error was swallowed', async () => {
    const { outcome, log } = await play({ works: [rolledBack(gone)] });
    expect(codeOf(outcome)).toBe('NP_TRANSACTION_ABORTED');
    expect(log).toEqual(['work', 'work', 'work']);
  });

  it('without events gives up as soon on a commit that the server no longer has', async () => {
    const { outcome, log } = await play({ works: [ready('a', [])], commits: [refused] });
    expect(codeOf(outcome)).toBe('NP_TRANSACTION_ABORTED');
    expect(log).toEqual(['work', 'commit', 'work', 'commit', 'work', 'commit']);
  });

  it('whose work hangs is given up in its time, whatever keeps its session from ending, and is not committed', async () => {
    const { outcome, log } = await play({ works: ['hangs'] });
    expect(codeOf(outcome)).toBe('NP_STORE_UNAVAILABLE');
    expect(String(outcome)).toMatch(/in 1000 ms .*nothing is committed/);
    expect(log).toEqual(['work']);
  });

  it('whose work hangs after a run that may have landed asks the ledger before it says that nothing is committed', async () => {
    const works: Script['works'] = [ready('first'), 'hangs'];
    const commits = [refused];
    expect(await play({ works, commits, testimonies: ['absent', 'committed'] })).toMatchObject({ outcome: 'first' });
    const { outcome } = await play({ works, commits, testimonies: ['absent', cut] });
    expect(String(outcome)).toMatch(/is unknown.*e1/);
  });
});

describe('a commit without a clear answer', () => {
  it('is a success once the outbox shows its events', async () => {
    const { outcome, log } = await play({ works: [ready('a')], commits: [unanswered], testimonies: ['committed'] });
    expect(outcome).toBe('a');
    expect(log).toEqual(['work', 'commit', 'ask']);
  });

  it('is a success too where the server refuses its repetition, having forgotten it', async () => {
    const { outcome } = await play({ works: [ready('a')], commits: [refused], testimonies: ['committed'] });
    expect(outcome).toBe('a');
  });

  it('is repeated while nothing is known, and the work is not', async () => {
    const { outcome, log } = await play({
      works: [ready('a')],
      commits: [unanswered, unanswered, committed],
      testimonies: [cut, 'absent'],
    });
    expect(outcome).toBe('a');
    expect(log).toEqual(['work', 'commit', 'ask', 'commit', 'ask', 'commit']);
  });

  it('runs again when refused and absent', async () => {
    const { outcome, log } = await play({
      works: [ready('first'), ready('second')],
      commits: [refused, committed],
      testimonies: ['absent'],
    });
    expect(outcome).toBe('second');
    expect(log).toEqual(['work', 'commit', 'ask', 'work', 'commit']);
  });

  it('landed late: the next run meets its own event id, and the result is that of the run that landed', async () => {
    const ownId = await versionConflict();
    const { outcome, log } = await play({
      works: [ready('first'), rolledBack(ownId)],
      commits: [refused],
      testimonies: ['absent', 'committed'],
    });
    expect(outcome).toBe('first');
    expect(log).toEqual(['work', 'commit', 'ask', 'work', 'ask']);
  });

  it('landed late, while majority reads lag behind: it runs again until they show it', async () => {
    const ownId = await versionConflict();
    const { outcome } = await play({
      works: [ready('first'), rolledBack(ownId)],
      commits: [refused],
      testimonies: ['absent', 'absent', 'absent', 'committed'],
    });
    expect(outcome).toBe('first');
  });

  it('landed late: the next run fails because the business finds its work done, and that is a success', async () => {
    const { outcome } = await play({
      works: [ready('first'), rolledBack(new Error('is paid already'))],
      commits: [refused],
      testimonies: ['absent', 'committed'],
    });
    expect(outcome).toBe('first');
  });

  it('that is refused in every run does not keep the transaction alive beyond its time', async () => {
    const stepDown = new MongoServerError({ message: 'x', code: 189, errorLabels: ['TransientTransactionError'] });
    const { outcome, log } = await play({
      works: [ready('a')],
      commits: [{ kind: 'refused', error: stepDown }],
      testimonies: ['absent'],
    });
    expect(codeOf(outcome)).toBe('NP_STORE_UNAVAILABLE');
    expect(String(outcome)).toMatch(/nothing is committed/);
    expect(log.length).toBeLessThan(100);
  });

  it('without an answer is pursued for some time even where the time for retries is nearly over', async () => {
    const { outcome } = await play({
      works: [rolledBack(conflict), ready('a')],
      commits: [...Array.from({ length: 12 }, () => unanswered), committed],
      testimonies: ['absent'],
    });
    expect(outcome).toBe('a');
  });

  it('did not land: the error of the next run is thrown', async () => {
    const error = new Error('is paid already');
    const { outcome } = await play({
      works: [ready('first'), rolledBack(error)],
      commits: [refused],
      testimonies: ['absent'],
    });
    expect(outcome).toBe(error);
  });

  it.each<[string, Script]>([
    ['the database stays away', { works: [ready('a')], commits: [unanswered], testimonies: [cut] }],
    ['it can still land', { works: [ready('a')], commits: [unanswered], testimonies: ['absent'] }],
    ['its rows are gone', { works: [ready('a')], commits: [refused], testimonies: ['unclear'] }],
    [
      'a later run fails and the ledger is away',
      { works: [ready('a'), rolledBack(new Error('x'))], commits: [refused], testimonies: ['absent', cut] },
    ],
  ])('is called unknown, with its event ids, when %s', async (_name, script) => {
    const { outcome } = await play(script);
    expect(codeOf(outcome)).toBe('NP_STORE_UNAVAILABLE');
    expect(String(outcome)).toMatch(/is unknown.*e1/);
  });

  it('is called unknown where it has no event to ask for', async () => {
    const { outcome, log } = await play({ works: [ready('a', [])], commits: [unanswered] });
    expect(codeOf(outcome)).toBe('NP_STORE_UNAVAILABLE');
    expect(String(outcome)).toMatch(/emitted no event/);
    expect(log.filter((entry) => entry === 'work')).toHaveLength(1);
  });
});

/** The error of an insert that met one of its own event ids. */
async function versionConflict(): Promise<unknown> {
  const { insertEvents } = await import('./events.js');
  const collection = { insertMany: () => Promise.reject(new MongoServerError({ message: 'dup', code: 11000 })) };
  return insertEvents(collection as never, {} as never, []).catch((error: unknown) => error);
}
