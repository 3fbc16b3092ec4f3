import type { EventEnvelope } from '@nightporter/contracts';
import { NightporterError, type RetryDelays } from '@nightporter/protocol';
import type { Handlers } from './handler-ports.js';
import { retryDelaysFault } from './retry-options.js';

/**
 * What the catalogue makes of an envelope: the event as this consumer's handlers know it (older versions upcast), or why it
 * cannot be handled.
 */
export type ReadResult =
  | { readonly kind: 'event'; readonly envelope: EventEnvelope }
  | { readonly kind: 'unsupported'; readonly reason: string }
  | { readonly kind: 'invalid'; readonly reason: string };

/** Every limit of the engine, with its unit. Defaults: {@link CONSUMER_DEFAULTS}. */
export interface ConsumerOptions {
  /** Messages per receive. */
  readonly receiveMax: number;
  /** The most that one transaction settles, of what the broker hands out and of what is parked; 1: a transaction for each message, without group commit. */
  readonly commitMax: number;
  /** Receive loops per subscriber; each has one batch in hand. */
  readonly receiveLoops: number;
  /** How long the broker hides a delivery; renewed at half of it while the batch is in hand. */
  readonly invisibleMs: number;
  /** The wait after the first, second … failed attempt; the last one repeats. */
  readonly retryScheduleMs: readonly number[];
  /** Used in place of `retryScheduleMs` where given. */
  readonly retryDelays: RetryDelays | null;
  /** Attempts before an event becomes a dead letter. */
  readonly attemptsMax: number;
  /**
   * Whether what a handler has failed with is nobody's fault and passes, such as a service that is down: that costs no attempt, and the event is
   * tried again after the first wait, for as long as it takes. By default nothing is; what the database does is never charged in any case.
   */
  readonly isTransient: (error: unknown) => boolean;
  /** Transactions of parked events that run at once. */
  readonly retryConcurrency: number;
  /** How often due parked events are looked for when nothing has rung. */
  readonly retryPollMs: number;
  /**
   * How long a claim keeps a parked event from other claimers; `handlerMs` and `transactionMs` together or more. Parked events share a transaction only where it is longer than
   * four times `transactionMs` (two of them may pass before a transaction has its turn) and twice `handlerMs`.
   */
  readonly claimMs: number;
  /** Time limit of one handler run. */
  readonly handlerMs: number;
  /** No further handler is started in a transaction older than this; the rest of the batch follows in the next one. */
  readonly transactionMs: number;
  /** When the database ends a transaction by itself (MongoDB: transactionLifetimeLimitSeconds); longer than handlerMs + transactionMs. */
  readonly transactionLifetimeMs: number;
  /** How often parked events that are next in line, but that nobody woke, are looked for. */
  readonly scanEveryMs: number;
  /** How long a parked event must have waited before the scanner takes it for forgotten. */
  readonly scanAgeMs: number;
  /** The most events that one scan wakes. */
  readonly scanMax: number;
  /** First and longest wait before a transaction that lost to a concurrent one is decided anew. */
  readonly conflictFirstMs: number;
  readonly conflictMaxMs: number;
  /** First and longest pause while the database, or the broker, does not answer. */
  readonly pauseFirstMs: number;
  readonly pauseMaxMs: number;
  /**
   * Conflicts and database failures in a row after which a batch is split, and a single message parked (without counting
   * an attempt), so that it cannot hold its queue for ever.
   */
  readonly hardshipsMax: number;
  /**
   * Deliveries of an unsettled message whose handler runs straight away. One delivered more often, or on record as started by
   * another process, may have ended that process: it is parked first, and runs as a claim, which counts the attempt before
   * the handler runs.
   */
  readonly deliveriesTrusted: number;
  /** How long the duplicate filter is waited for. */
  readonly filterMs: number;
  /** How long it is left alone after a failure. */
  readonly filterPauseMs: number;
  /** How often the producer's published rows are compared with what the group has. */
  readonly ledgerEveryMs: number;
  /** Rows are looked at once they were published so long ago: before that, the broker may yet bring them. */
  readonly ledgerLagMs: number;
  /** The lag while batches come in full: what waits in a backlog at the broker is not lost, and cheaper to take from there. */
  readonly ledgerBacklogLagMs: number;
  /** So far behind the watermark each walk begins, for marks that became visible later than their moment. */
  readonly ledgerOverlapMs: number;
  /** Published rows that are looked at in one step. */
  readonly ledgerPageMax: number;
  /** Events that are read whole from the ledger, and parked, at once. */
  readonly ledgerBatchMax: number;
  /**
   * Events of a group's history that one transaction settles, after they went on record as begun: while the group is bootstrapping, and where
   * more than so many of a page are missing. 1: each is parked first, as whatever else the sweep finds.
   */
  readonly catchUpMax: number;
  /** How long the right to walk outlives a member that was killed. */
  readonly ledgerClaimMs: number;
  /** How often the broker's own dead letters are looked for; again at once while there are some. */
  readonly brokerDeadLettersEveryMs: number;
  /** How often dead letters that are yet to be copied are looked for; again at once while there are some. */
  readonly copyEveryMs: number;
  /** How long a copy that could not be sent waits until it is tried again; longer than a send takes. */
  readonly copyClaimMs: number;
  /** How long inbox records are kept: the store's, told here too. An event is only looked up as maybe forgotten when it is half as old. */
  readonly inboxRetentionMs: number;
  /** How long the broker keeps messages (RocketMQ: fileReservedTime): it may deliver them again for so long. */
  readonly brokerRetentionMs: number;
  /** How long a parked event waits for the versions before it until the ledger is asked for them. */
  readonly gapWaitMs: number;
  /** How often gaps older than that are looked for. */
  readonly gapEveryMs: number;
  /** The most aggregates with a gap that are looked at in one step. */
  readonly gapMax: number;
  /** How long `stop` waits for the work in hand; near its end, what still runs is rolled back. */
  readonly drainMs: number;
  /** Reads an envelope by the catalogue; asked only for events that have a handler. By default every envelope is an event. */
  readonly read: (envelope: EventEnvelope) => ReadResult;
}

export interface ConsumerSetup<Session> {
  readonly group: string;
  readonly handlers: Handlers<Session>;
}

const DAY_MS = 24 * 60 * 60 * 1_000;

export const CONSUMER_DEFAULTS: ConsumerOptions = {
  receiveMax: 32,
  commitMax: 32,
  receiveLoops: 4,
  invisibleMs: 30_000,
  retryScheduleMs: [1_000, 5_000, 30_000, 300_000],
  retryDelays: null,
  attemptsMax: 5,
  isTransient: () => false,
  retryConcurrency: 4,
  retryPollMs: 500,
  claimMs: 90_000,
  handlerMs: 30_000,
  transactionMs: 5_000,
  transactionLifetimeMs: 60_000,
  scanEveryMs: 5_000,
  scanAgeMs: 5_000,
  scanMax: 100,
  conflictFirstMs: 5,
  conflictMaxMs: 500,
  pauseFirstMs: 100,
  pauseMaxMs: 10_000,
  hardshipsMax: 10,
  deliveriesTrusted: 2,
  filterMs: 50,
  filterPauseMs: 5_000,
  ledgerEveryMs: 10_000,
  ledgerLagMs: 10_000,
  ledgerBacklogLagMs: 300_000,
  ledgerOverlapMs: 60_000,
  ledgerPageMax: 500,
  ledgerBatchMax: 20,
  catchUpMax: 64,
  ledgerClaimMs: 30_000,
  brokerDeadLettersEveryMs: 30_000,
  copyEveryMs: 1_000,
  copyClaimMs: 60_000,
  inboxRetentionMs: 90 * DAY_MS,
  brokerRetentionMs: 3 * DAY_MS,
  gapWaitMs: 5_000,
  gapEveryMs: 2_000,
  gapMax: 100,
  drainMs: 10_000,
  read: (envelope) => ({ kind: 'event', envelope }),
};

const POSITIVE_INTEGERS = [
  'receiveMax',
  'commitMax',
  'receiveLoops',
  'invisibleMs',
  'attemptsMax',
  'retryConcurrency',
  'retryPollMs',
  'claimMs',
  'handlerMs',
  'transactionMs',
  'transactionLifetimeMs',
  'scanEveryMs',
  'scanAgeMs',
  'scanMax',
  'conflictFirstMs',
  'conflictMaxMs',
  'pauseFirstMs',
  'pauseMaxMs',
  'hardshipsMax',
  'deliveriesTrusted',
  'filterMs',
  'filterPauseMs',
  'ledgerEveryMs',
  'ledgerLagMs',
  'ledgerBacklogLagMs',
  'ledgerOverlapMs',
  'ledgerPageMax',
  'ledgerBatchMax',
  'catchUpMax',
  'ledgerClaimMs',
  'brokerDeadLettersEveryMs',
  'copyEveryMs',
  'copyClaimMs',
  'inboxRetentionMs',
  'brokerRetentionMs',
  'gapWaitMs',
  'gapEveryMs',
  'gapMax',
  'drainMs',
] as const satisfies readonly (keyof ConsumerOptions)[];

/** A longer timer goes off at once. */
const TIMER_MS_MAX = 2 ** 31 - 1;

/** Compared with the database's dates only. */
const NEVER_TIMED: ReadonlySet<string> = new Set(['inboxRetentionMs', 'brokerRetentionMs']);

/** Fills in the defaults; rejects with NP_CONFIG_INVALID what cannot work. */
export function resolveOptions(given: Partial<ConsumerOptions>): ConsumerOptions {
  const options: ConsumerOptions = { ...CONSUMER_DEFAULTS, ...given };
  for (const name of POSITIVE_INTEGERS) {
    const max = NEVER_TIMED.has(name) ? Number.MAX_SAFE_INTEGER : TIMER_MS_MAX;
    if (!Number.isSafeInteger(options[name]) || options[name] < 1 || options[name] > max) {
      throw invalid(`${name} is ${options[name]}; it must be a whole number from 1 to ${max}`);
    }
  }
  const { retryDelays, retryScheduleMs } = options;
  const retryFault =
    retryDelaysFault('retryScheduleMs', { kind: 'schedule', delaysMs: retryScheduleMs }) ??
    (retryDelays === null ? null : retryDelaysFault('retryDelays', retryDelays));
  if (retryFault !== null) throw invalid(retryFault);
  if (options.claimMs < options.handlerMs + options.transactionMs) {
    throw invalid(
      `claimMs is ${options.claimMs}; it must be handlerMs (${options.handlerMs}) and transactionMs (${options.transactionMs}) together or more, ` +
        'so that a claim does not run out, and cost an attempt, while its handler is still within its time',
    );
  }
  if (options.inboxRetentionMs < 2 * options.brokerRetentionMs) {
    throw invalid(
      `inboxRetentionMs is ${options.inboxRetentionMs}; it must be twice brokerRetentionMs (${options.brokerRetentionMs}) or more, since what ` +
        'the broker may deliver again must not be forgotten',
    );
  }
  if (options.handlerMs + options.transactionMs >= options.transactionLifetimeMs) {
    throw invalid(
      `handlerMs (${options.handlerMs}) and transactionMs (${options.transactionMs}) together must be less than ` +
        `transactionLifetimeMs (${options.transactionLifetimeMs}), after which the database ends a transaction by itself`,
    );
  }
  return options;
}

function invalid(message: string): NightporterError {
  return new NightporterError('NP_CONFIG_INVALID', `Consumer options: ${message}.`);
}
