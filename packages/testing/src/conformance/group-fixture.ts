import type { GroupChange, GroupStore, IncomingEvent, ParkedQueue, Position } from '@nightporter/consumer';
import type { AggregateKey } from '@nightporter/protocol';

export interface GroupFixture<Session> {
  readonly store: GroupStore<Session>;
  readonly parked: ParkedQueue;
  /** Lets the database's clock go on. */
  readonly passTime: (byMs: number) => Promise<void>;
  /** What a handler might do: writes a business document through the session. */
  readonly writeDocument: (session: Session, document: string, value: string) => Promise<void>;
  /** What has been committed there; null where nothing has. */
  readonly readDocument: (document: string) => Promise<string | null>;
}

/** Commits changes in a transaction of their own. */
export async function commitChanges<Session>(
  store: GroupStore<Session>,
  events: readonly IncomingEvent[],
  changes: readonly GroupChange[],
): Promise<void> {
  await store.transact(async (transaction) => {
    await transaction.load(events);
    await transaction.save(changes);
  });
}

export function positionChange(aggregate: AggregateKey, position: Partial<Position>): GroupChange {
  return { kind: 'position', aggregate, position: { version: 0, startVersion: 0, state: 'open', ...position } };
}

export function parkChange(event: IncomingEvent, details: Partial<GroupChange & { kind: 'park' }> = {}): GroupChange {
  return { kind: 'park', event, state: 'retry', attempts: 0, retryInMs: 0, failure: null, ...details };
}
