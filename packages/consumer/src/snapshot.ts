import type { ParkedState } from './ports.js';

/** Counts since the start of this consumer, and what it does now. */
export interface ConsumerSnapshot {
  readonly received: number;
  /** Deliveries that were not the message's first. */
  readonly redelivered: number;
  readonly applied: number;
  readonly ignored: number;
  readonly skipped: number;
  readonly duplicates: number;
  /** Messages at or below the start of the group. */
  readonly beforeStart: number;
  /** Positions that had been lost and were moved on by the inbox. */
  readonly advanced: number;
  /** Messages that came too early while the walk of the group's history had still to come to them: it brings them. */
  readonly leftToLedger: number;
  /** How often a message was parked, by the state it was parked in. */
  readonly parked: Readonly<Record<ParkedState, number>>;
  /** Unreadable messages and version conflicts, kept without sequence. */
  readonly setAside: number;
  /** Of what the duplicate filter took for settled: what the inbox confirmed, and what it did not. */
  readonly filterConfirmed: number;
  readonly filterRefuted: number;
  /** How often the filter failed, or did not answer in time. */
  readonly filterFailures: number;
  readonly handlerFailures: number;
  readonly conflicts: number;
  readonly woken: number;
  /** Published rows that the ledger sweep has compared, and those of them that were neither settled nor parked. */
  readonly ledgerSeen: number;
  readonly ledgerMissing: number;
  /** Messages that the broker had given up, whose events were settled or parked from the ledger. */
  readonly brokerDeadLetters: number;
  /** Copies of dead letters that were sent, and how often one could not be. */
  readonly deadLettersCopied: number;
  readonly copyFailures: number;
  /** Versions that were missing and could not be had, counted when that became known. */
  readonly versionsUnavailable: number;
  /** Rounds of the ledger sweep that could not be carried out. */
  readonly ledgerFailures: number;
  /** While the group catches up with its history: as last told, of all producers together; null once it is live, or in a member that does not walk. */
  readonly bootstrap: {
    readonly walked: number;
    readonly about: number | null;
    readonly perSecond: number;
    /** The earliest. */
    readonly watermarkMs: number;
  } | null;
  readonly acknowledged: number;
  readonly databaseFailures: number;
  readonly brokerFailures: number;
  readonly batchesInHand: number;
  readonly claimsInHand: number;
  /** True while the database does not answer: nothing is received. */
  readonly paused: boolean;
  readonly state: 'idle' | 'running' | 'stopping' | 'stopped';
}
