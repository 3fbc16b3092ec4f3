import { Wakeup, sleep, type Clock, type Random, type RetryPolicy } from '@nightporter/protocol';
import type { CatchUpSign } from './catch-up-sign.js';
import type { StoreCircuit } from './circuit.js';
import type { CopyPorts } from './copy-ports.js';
import type { Counters } from './counters.js';
import type { FilterGuard } from './duplicates.js';
import { classify } from './failure.js';
import type { DuplicatePorts } from './filter-ports.js';
import type { GapFinder, GroupProducer } from './ledger-ports.js';
import type { ConsumerOptions } from './options.js';
import type { ConsumerEvent, ConsumerObserver } from './consumer-events.js';
import type { Emitter, Handlers } from './handler-ports.js';
import type { GroupStore, ParkedQueue, StartedRecords, Subscriber } from './ports.js';
import type { ConsumerTracer } from './trace-ports.js';
import type { Turns } from './turns.js';

/** What the engine needs of the world. */
export interface ConsumerPorts<Session> {
  /** One per topic of the group. */
  readonly subscribers: readonly Subscriber[];
  /**
   * The topic in which the broker keeps what it has given up for the group: `receive` resolves empty while there is none. Without it, such
   * messages are left to the ledger sweep.
   */
  readonly brokerDeadLetters?: Subscriber;
  readonly store: GroupStore<Session>;
  readonly parked: ParkedQueue;
  /** Without it, only the broker's delivery count tells that an event may have ended its process. */
  readonly started?: StartedRecords;
  /** Spares known duplicates a transaction; without it, each has one. */
  readonly duplicates?: DuplicatePorts;
  /** Where dead letters are copied to; without it, nowhere. */
  readonly deadLetterCopies?: CopyPorts;
  /** What the group compares itself with; without it, only the broker brings events. */
  readonly ledgerSweep?: { readonly gaps: GapFinder; readonly producers: readonly GroupProducer[] };
  readonly emitter: Emitter<Session>;
  readonly clock: Clock;
  readonly random: Random;
  readonly observe: ConsumerObserver;
  readonly tracer?: ConsumerTracer;
}

/** What the loops of one consumer share. */
export interface Engine<Session> {
  /** Names this process start. */
  readonly owner: string;
  readonly ports: ConsumerPorts<Session>;
  readonly options: ConsumerOptions;
  readonly handlers: Handlers<Session>;
  readonly retryPolicy: RetryPolicy;
  readonly circuit: StoreCircuit;
  readonly turns: Turns;
  readonly counters: Counters;
  readonly filter: FilterGuard;
  /** Rings when parked events may have become due. */
  readonly due: DueBell;
  readonly backlog: BacklogSign;
  readonly catchUp: CatchUpSign;
  /** Rings for good when the consumer is to stop: nothing new is begun. */
  readonly stopping: Wakeup;
  /** Rings for good shortly before the drain ends: what still runs is rolled back. */
  readonly rollBack: Wakeup;
  /** Counts an event and passes it on to the observer. */
  tell(event: ConsumerEvent): void;
  /** Ends the consumer with a fault that is nobody's to handle. */
  readonly fail: (error: unknown) => void;
}

/** A full batch means that more is waiting at the broker. */
export class BacklogSign {
  #lastFullAt = Number.NEGATIVE_INFINITY;

  full(now: number): void {
    this.#lastFullAt = now;
  }

  /** Whether a batch was full within the last `withinMs`. */
  isFresh(now: number, withinMs: number): boolean {
    return now - this.#lastFullAt < withinMs;
  }
}

/** A bell that remembers one ring while nobody waits, so that a ring during a look-up leads to another look-up. */
export class DueBell {
  readonly #bell = new Wakeup();
  #isRung = false;

  ring(): void {
    this.#isRung = true;
    this.#bell.ring();
  }

  /** Resolves at a ring, at one since the last `wait`, after `forMs`, or when `stopping` rings. */
  async wait<Session>({ ports, stopping }: Engine<Session>, forMs: number): Promise<void> {
    if (!this.#isRung) await sleep(ports.clock, forMs, this.#bell, stopping);
    this.#isRung = false;
  }
}

/** A call to the database, outside of the settling transactions, has failed: told, and waited for like any outage. */
export function storeFailed<Session>(engine: Engine<Session>, operation: string, error: unknown): void {
  const failure = classify(error);
  if (failure === 'broken') throw error;
  if (failure === 'conflict') {
    engine.tell({ kind: 'conflict' });
    return;
  }
  engine.tell({ kind: 'database-unavailable', operation, error });
  engine.circuit.failed();
}
