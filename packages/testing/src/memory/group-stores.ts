import type {
  DeadLetterCopies,
  Emitter,
  GapFinder,
  GroupStore,
  ParkedQueue,
  RepeatedEvents,
  StartedRecords,
} from '@nightporter/consumer';
import type { JsonValue } from '@nightporter/contracts';
import { eventId, type Namespace } from '@nightporter/protocol';
import type { MemoryGroup } from './group.js';
import type { MemoryTransaction } from './group-transaction.js';
import { toDatabase, type Network } from './network.js';
import type { CommittedEvent } from './outbox.js';

/**
 * What a handler writes through. Everything commits with the transaction of its event or not at all; a call that fails
 * dooms the transaction, whatever the handler makes of the error.
 */
export class MemorySession {
  readonly #transaction: MemoryTransaction;
  readonly #network: Network;
  #doomedBy: Error | undefined;

  constructor(transaction: MemoryTransaction, network: Network) {
    this.#transaction = transaction;
    this.#network = network;
  }

  /** What the database answered when it failed inside a handler, if it did. */
  get doomedBy(): Error | undefined {
    return this.#doomedBy;
  }

  /** Adds to the group's effects. */
  effect(key: string): Promise<void> {
    return this.call('session.effect', () => {
      this.#transaction.effect(key);
    });
  }

  emit(event: CommittedEvent): Promise<void> {
    return this.call('session.emit', () => {
      this.#transaction.emit(event);
    });
  }

  read(document: string): Promise<JsonValue | undefined> {
    return this.call('session.read', () => this.#transaction.readBusiness(document));
  }

  /** Two transactions that write one document conflict. */
  write(document: string, value: JsonValue): Promise<void> {
    return this.call('session.write', () => {
      this.#transaction.writeBusiness(document, value);
    });
  }

  async call<Result>(name: string, operation: () => Result): Promise<Result> {
    try {
      return await this.#network.call(name, operation, toDatabase(name));
    } catch (error) {
      this.#doomedBy ??= error instanceof Error ? error : new Error(String(error));
      throw error;
    }
  }
}

export interface MemoryGroupStores {
  readonly store: GroupStore<MemorySession>;
  readonly parked: ParkedQueue;
  readonly started: StartedRecords;
  readonly gaps: GapFinder;
  readonly repeats: RepeatedEvents;
  readonly copies: DeadLetterCopies;
}

/** The consumer's ports on an in-memory group that is reached through `network`. */
export function memoryGroupStores(group: MemoryGroup, network: Network): MemoryGroupStores {
  const call = <Result>(name: string, operation: () => Result): Promise<Result> =>
    network.call(name, operation, toDatabase(name));
  return {
    store: { transact: (work) => transact(group, network, work) },
    repeats: { count: (events) => call('repeats.count', () => group.countRepeats(events)) },
    gaps: { find: (request) => call('gaps.find', () => group.findGaps(request)) },
    copies: {
      claim: (claimMs) => call('copies.claim', () => group.claimCopy(claimMs)),
      done: (id) =>
        call('copies.done', () => {
          group.removeCopy(id);
        }),
    },
    started: { begin: (batch) => call('started.begin', () => group.started.begin(batch)) },
    parked: {
      claimDue: (request) => call('parked.claimDue', () => group.claimDue(request)),
      giveBack: (claimed) =>
        call('parked.giveBack', () => {
          group.giveBack(claimed);
        }),
      behind: (places, limit) => call('parked.behind', () => places.map((place) => group.waitingBehind(place, limit))),
      wake: (request) => call('parked.wake', () => group.wake(request)),
    },
  };
}

async function transact<Result>(
  group: MemoryGroup,
  network: Network,
  work: Parameters<GroupStore<MemorySession>['transact']>[0],
): Promise<Result> {
  const transaction = group.begin();
  const session = new MemorySession(transaction, network);
  const result = await work({
    session,
    load: (events) => session.call('group.load', () => transaction.load(events)),
    save: (changes) =>
      session.call('group.save', () => {
        transaction.save(changes);
      }),
  }).catch((error: unknown) => {
    throw session.doomedBy ?? error;
  });
  if (session.doomedBy !== undefined) throw session.doomedBy;
  await session.call('group.commit', () => {
    transaction.commit();
  });
  return result as Result;
}

/** Writes events into an outbox with the transaction; ids derive from the cause, so that a repeated handler emits the same. */
export function memoryEmitter(own: { namespace: Namespace; source: string; topic: string }): Emitter<MemorySession> {
  return (session, cause) => {
    let count = 0;
    return async (event) => {
      count += 1;
      await session.emit({
        ...own,
        ...event,
        eventId: eventId(`${cause.eventId}.${own.source}.${count}`),
        headers: {
          ...(cause.traceparent === undefined ? {} : { traceparent: cause.traceparent }),
          correlationId: cause.correlationId ?? cause.eventId,
          causationId: cause.eventId,
        },
      });
    };
  };
}
