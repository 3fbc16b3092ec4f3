import { isNightporterError, sleep, Wakeup, type NightporterError } from '@nightporter/protocol';
import type { Attempt, WorkOutcome } from './attempt.js';
import type { ConflictLanes } from './conflict-lanes.js';
import { failureOf, type CommitAnswer, type Failure } from './failures.js';
import { outOfTime, swallowed, unknownOutcome } from './transaction-errors.js';
import type { OutboxWorld } from './world.js';
import type { Receipt, Testimony } from './witness.js';

export interface TransactionPorts<Result> {
  begin(): Attempt<Result>;
  /** Whether the transaction with these events, at least one, is committed. Rejects when the database does not answer. */
  askLedger(receipts: readonly Receipt[]): Promise<Testimony>;
  readonly world: Pick<OutboxWorld, 'clock' | 'random'>;
  readonly lanes: ConflictLanes;
  readonly retryMs: number;
  /** Work that is not done by then is given up; without, only the driver's limits hold. */
  readonly workMs?: number;
}

/** A run that reached its commit. */
export interface Committing<Result> {
  readonly result: Result;
  readonly receipts: readonly Receipt[];
}

type Settlement<Result> =
  | { readonly kind: 'committed'; readonly result: Result }
  | { readonly kind: 'run-again'; readonly ifTimeIsOver: NightporterError };

type RolledBack = Extract<WorkOutcome<unknown>, { kind: 'rolled-back' }>;

/** The lane of transactions that lost a conflict over a document of the business; what it is, only the server knows. */
const UNKNOWN_LANE = '*';

/** `none`: the transaction has no event that the ledger could be asked for. */
export type Inquiry = Testimony | 'unavailable' | 'none';

/**
 * What to do about a commit that was not plainly answered. A refusal of the server is final, unless an earlier answer to the same
 * commit was lost, possibly inside the driver: so the ledger speaks first. Without an answer the commit is repeated, which the server
 * understands as a question; running the work again then could double it.
 */
export function judgeCommit(
  answer: Exclude<CommitAnswer['kind'], 'committed'>,
  inquiry: Inquiry,
): 'committed' | 'run-again' | 'ask-again' | 'unknown' {
  if (inquiry === 'committed') return 'committed';
  if (answer === 'unanswered' || inquiry === 'unavailable') return 'ask-again';
  return inquiry === 'unclear' ? 'unknown' : 'run-again';
}

/** A swallowed error shows as a transaction that the server no longer has, in every run again; a fail-over does so once. */
const ABORTED_RUNS_MAX = 3;

/** A commit in doubt is pursued at least this long, whatever was left of the time. */
const DOUBT_MS_MIN = 10_000;

/**
 * Runs a transaction until it is committed, or fails for good, or the time is over.
 *
 * `working`: an attempt runs its work. Rolled back, it is run again after a pause where the failure was the database's, else its error
 * is thrown. `committing`: a commit that is not plainly answered is judged ({@link judgeCommit}) by what the ledger says of the
 * attempt's own events. Found, the attempt committed, and its result is the transaction's.
 *
 * An attempt that was refused and found absent stays in mind as `doubtful`: should it have landed all the same, the next one fails, on
 * its own event id or because the business finds its work done; so the ledger is asked again before any error is thrown.
 */
export class TransactionRun<Result> {
  readonly #ports: TransactionPorts<Result>;
  readonly #startedAtMs: number;
  readonly #deadlineMs: number;
  #runs = 0;
  #abortedRuns = 0;
  #doubtful: Committing<Result> | null = null;
  /** Where this transaction waits its turn after a conflict. */
  #lane: string | null = null;

  constructor(ports: TransactionPorts<Result>) {
    this.#ports = ports;
    this.#startedAtMs = ports.world.clock.now();
    this.#deadlineMs = this.#startedAtMs + ports.retryMs;
  }

  async run(): Promise<Result> {
    for (;;) {
      let settlement = await this.#inLane(() => this.#attempt());
      if (settlement.kind === 'run-again' && this.#timeIsOver()) {
        settlement = await this.#throwUnlessLanded(settlement.ifTimeIsOver);
      }
      if (settlement.kind === 'committed') return settlement.result;
      await this.#pause(this.#runs);
    }
  }

  async #inLane(attempt: () => Promise<Settlement<Result>>): Promise<Settlement<Result>> {
    if (this.#lane === null) return attempt();
    const leave = await this.#ports.lanes.enter(this.#lane, this.#deadlineMs - this.#nowMs());
    try {
      return await attempt();
    } finally {
      leave();
    }
  }

  async #attempt(): Promise<Settlement<Result>> {
    const attempt = this.#ports.begin();
    this.#runs += 1;
    let outcome: WorkOutcome<Result> | 'given-up' | null = null;
    try {
      outcome = await this.#workInTime(attempt);
      if (outcome === 'given-up') return await this.#throwUnlessLanded(this.#tooLong());
      if (outcome.kind === 'ready') return await this.#commit(attempt, outcome);
      return await this.#afterRollback(outcome);
    } finally {
      const ended = attempt.end();
      // The statement that hangs may hold up this too. Without its commit the run comes to nothing in any case.
      if (outcome !== 'given-up') await ended;
    }
  }

  /** A statement can hang for as long as the driver waits for a socket, far longer than whoever asked may wait. */
  async #workInTime(attempt: Attempt<Result>): Promise<WorkOutcome<Result> | 'given-up'> {
    const { workMs, world } = this.#ports;
    if (workMs === undefined) return attempt.work();
    const limitMs = Math.max(0, this.#startedAtMs + workMs - this.#nowMs());
    const done = new Wakeup();
    const outcome = attempt.work().finally(() => {
      done.ringForGood();
    });
    await sleep(world.clock, limitMs, done);
    return done.rungForGood ? outcome : 'given-up';
  }

  #tooLong(): NightporterError {
    const spent = { runs: this.#runs, spentMs: Math.round(this.#nowMs() - this.#startedAtMs) };
    return outOfTime({ kind: 'unavailable' }, spent, 'its work was not done (workMs)');
  }

  async #afterRollback({ error, emitError, contested }: RolledBack): Promise<Settlement<Result>> {
    const thrown = failureOf(error);
    // The business may have replaced what a failed emit told it.
    const failure = thrown.kind === 'fatal' ? failureOf(emitError) : thrown;
    if (failure.kind === 'conflict') this.#lane = contested ?? UNKNOWN_LANE;
    if (failure.kind !== 'fatal') return this.#runAgain(failure, error);
    return this.#throwUnlessLanded(error, isNightporterError(error, 'NP_VERSION_CONFLICT'));
  }

  async #commit(attempt: Attempt<Result>, committing: Committing<Result>): Promise<Settlement<Result>> {
    const doubtUntilMs = Math.max(this.#deadlineMs, this.#nowMs() + DOUBT_MS_MIN);
    for (let question = 1; ; question += 1) {
      const answer = await attempt.commit();
      if (answer.kind === 'committed') return { kind: 'committed', result: committing.result };
      switch (judgeCommit(answer.kind, await this.#inquire(committing.receipts))) {
        case 'committed':
          return { kind: 'committed', result: committing.result };
        case 'run-again':
          if (committing.receipts.length > 0) this.#doubtful = committing;
          return this.#runAgain(failureOf(answer.error), answer.error);
        case 'unknown':
          throw unknownOutcome(committing.receipts, answer.error);
        case 'ask-again':
          if (this.#nowMs() >= doubtUntilMs) throw unknownOutcome(committing.receipts, answer.error);
          await this.#pause(question);
      }
    }
  }

  #runAgain(failure: Failure, error: unknown): Settlement<Result> {
    if (failure.kind === 'aborted') this.#abortedRuns += 1;
    if (this.#abortedRuns >= ABORTED_RUNS_MAX) throw swallowed(error);
    const spent = { runs: this.#runs, spentMs: Math.round(this.#nowMs() - this.#startedAtMs) };
    return { kind: 'run-again', ifTimeIsOver: outOfTime(failure, spent, error) };
  }

  /**
   * Throws the error unless the doubtful attempt turns out to be committed. Our own event id in the outbox says that it is, even
   * where majority reads do not show it yet: then the transaction is run again, until they do.
   */
  async #throwUnlessLanded(error: unknown, ownIdMet = false): Promise<Settlement<Result>> {
    const doubtful = this.#doubtful;
    if (doubtful === null) throw error;
    const inquiry = await this.#inquire(doubtful.receipts);
    if (inquiry === 'committed') return { kind: 'committed', result: doubtful.result };
    if (ownIdMet) return { kind: 'run-again', ifTimeIsOver: unknownOutcome(doubtful.receipts, error) };
    throw inquiry === 'absent' ? error : unknownOutcome(doubtful.receipts, error);
  }

  async #inquire(receipts: readonly Receipt[]): Promise<Inquiry> {
    if (receipts.length === 0) return 'none';
    try {
      return await this.#ports.askLedger(receipts);
    } catch {
      // No testimony is an answer too; what failed shows in the commit, which is asked again.
      return 'unavailable';
    }
  }

  #nowMs(): number {
    return this.#ports.world.clock.now();
  }

  #timeIsOver(): boolean {
    return this.#nowMs() >= this.#deadlineMs;
  }

  async #pause(round: number): Promise<void> {
    const { clock, random } = this.#ports.world;
    await sleep(clock, backoffMs(round, random()));
  }
}

const BACKOFF_MS_MIN = 4;
const BACKOFF_MS_MAX = 400;

/** Doubling, capped, and spread over its upper half, so that rivals for one aggregate part. `chance` is in [0, 1). */
export function backoffMs(round: number, chance: number): number {
  const capMs = Math.min(BACKOFF_MS_MAX, BACKOFF_MS_MIN * 2 ** Math.min(round, 20));
  return capMs * (0.5 + chance / 2);
}
