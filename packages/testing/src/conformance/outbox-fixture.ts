import type { OutboxRow } from '@nightporter/contracts';

/** An event for the outbox; the fixture fills in the rest. `outbox` names one of the two that the ports are configured for. */
export interface SampleEvent {
  readonly aggregateId: string;
  readonly outbox?: 'first' | 'second';
}

/** What every outbox fixture can do. */
export interface OutboxFixture {
  /** Commits events in one transaction, versions dense per aggregate, and returns the rows as the reader gives them. */
  readonly commit: (events: readonly SampleEvent[]) => Promise<readonly OutboxRow[]>;
}
