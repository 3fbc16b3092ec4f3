/** What copying dead letters needs of the world. As in ports.ts, each comment is the port's contract. */
import type { IncomingEvent, ParkedFailure } from './ports.js';

/** A dead letter, as it was in the moment of its death. */
export interface DeadLetterCopy {
  /** Names the copy: an event that dies twice has two. */
  readonly id: string;
  readonly group: string;
  readonly event: IncomingEvent;
  readonly attempts: number;
  readonly failure: ParkedFailure | null;
  /** On the database's clock. */
  readonly diedAtMs: number;
}

/**
 * Copies that are yet to be sent. The store's `save` writes one for each event that it parks as `dead`, in the same transaction. `claim` takes
 * the one that has waited longest, for `claimMs` on the database's clock: it goes to one claimer only, and to another once that time has
 * passed. Null when there is none. `done` removes a copy for good. Both reject with NP_STORE_UNAVAILABLE.
 */
export interface DeadLetterCopies {
  claim(claimMs: number): Promise<DeadLetterCopy | null>;
  done(id: string): Promise<void>;
}

/** Sends a copy, and resolves once the broker has it. Rejects when it may not have it; the same copy may then be sent again. */
export interface DeadLetterSender {
  send(copy: DeadLetterCopy): Promise<void>;
}

export interface CopyPorts {
  readonly copies: DeadLetterCopies;
  readonly sender: DeadLetterSender;
}
