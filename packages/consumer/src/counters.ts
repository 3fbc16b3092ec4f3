import type { ConsumerEvent } from './consumer-events.js';
import type { ConsumerSnapshot } from './snapshot.js';

/** What is counted without an event of its own. */
export type SilentCount = 'beforeStart' | 'advanced' | 'handlerFailures' | 'leftToLedger';

/** All counts of a snapshot. */
export type Counts = Omit<ConsumerSnapshot, 'paused' | 'state'>;

/** The counts behind a snapshot. */
export class Counters {
  readonly #counts = {
    received: 0,
    redelivered: 0,
    applied: 0,
    ignored: 0,
    skipped: 0,
    duplicates: 0,
    beforeStart: 0,
    advanced: 0,
    leftToLedger: 0,
    parked: { gap: 0, behind: 0, retry: 0, dead: 0 },
    setAside: 0,
    filterConfirmed: 0,
    filterRefuted: 0,
    filterFailures: 0,
    handlerFailures: 0,
    conflicts: 0,
    woken: 0,
    ledgerSeen: 0,
    ledgerMissing: 0,
    brokerDeadLetters: 0,
    deadLettersCopied: 0,
    copyFailures: 0,
    versionsUnavailable: 0,
    ledgerFailures: 0,
    acknowledged: 0,
    databaseFailures: 0,
    brokerFailures: 0,
    batchesInHand: 0,
    claimsInHand: 0,
  };

  /** By the topics of their producer. */
  readonly #bootstraps = new Map<string, Extract<ConsumerEvent, { kind: 'bootstrapping' }>>();

  values(): Counts {
    return { ...this.#counts, parked: { ...this.#counts.parked }, bootstrap: this.#bootstrap() };
  }

  /** Batches and claims that are being worked on now: `by` is 1 or −1. */
  inHand(what: 'batchesInHand' | 'claimsInHand', by: number): void {
    this.#counts[what] += by;
  }

  count(what: SilentCount): void {
    this.#counts[what] += 1;
  }

  add(event: ConsumerEvent): void {
    switch (event.kind) {
      case 'received':
        this.#counts.received += event.count;
        this.#counts.redelivered += event.redelivered;
        break;
      case 'settled':
        this.#counts[event.outcome] += 1;
        break;
      case 'duplicate':
        this.#counts.duplicates += 1;
        break;
      case 'parked':
        this.#counts.parked[event.state] += 1;
        break;
      case 'set-aside':
        this.#counts.setAside += 1;
        break;
      case 'filtered':
        this.#counts.filterConfirmed += event.confirmed;
        this.#counts.filterRefuted += event.refuted;
        break;
      case 'filter-unavailable':
        this.#counts.filterFailures += 1;
        break;
      case 'conflict':
        this.#counts.conflicts += 1;
        break;
      case 'acknowledged':
        this.#counts.acknowledged += event.count;
        break;
      case 'woken':
        this.#counts.woken += event.count;
        break;
      case 'swept':
        this.#counts.ledgerSeen += event.seen;
        this.#counts.ledgerMissing += event.missing;
        break;
      case 'broker-dead-letter':
        this.#counts.brokerDeadLetters += 1;
        break;
      case 'dead-letter-copied':
        this.#counts.deadLettersCopied += 1;
        break;
      case 'dead-letter-not-copied':
        this.#counts.copyFailures += 1;
        break;
      case 'bootstrapping':
        this.#bootstraps.set(event.topics.join(' '), event);
        break;
      case 'bootstrap-ended':
        this.#bootstraps.delete(event.topics.join(' '));
        break;
      case 'version-unavailable':
        this.#counts.versionsUnavailable += 1;
        break;
      case 'unregistered':
      case 'ledger-unavailable':
        this.#counts.ledgerFailures += 1;
        break;
      case 'database-unavailable':
        this.#counts.databaseFailures += 1;
        break;
      case 'broker-unavailable':
      case 'broker-dead-letters-unavailable':
        this.#counts.brokerFailures += 1;
        break;
    }
  }

  #bootstrap(): Counts['bootstrap'] {
    const told = [...this.#bootstraps.values()];
    if (told.length === 0) return null;
    const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);
    const about = told.flatMap((one) => (one.about === null ? [] : [one.about]));
    return {
      walked: sum(told.map((one) => one.walked)),
      about: about.length === told.length ? sum(about) : null,
      perSecond: sum(told.map((one) => one.perSecond)),
      watermarkMs: Math.min(...told.map((one) => one.watermarkMs)),
    };
  }
}
