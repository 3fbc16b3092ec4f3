import {
  defaultEventKey,
  digestOf,
  envelopeOf,
  type EventHeaders,
  type JsonValue,
  type OutboxRow,
} from '@nightporter/contracts';
import type {
  Mark,
  MarkOutcome,
  OutboxActionOutcome,
  OutboxFigures,
  RowReference,
  SweepCursor,
  UnsettledFigures,
  UnsettledStatus,
} from '@nightporter/relay';
import {
  aggregateKey,
  aggregateVersion,
  slotOf,
  type AggregateKey,
  type EventId,
  type Namespace,
  type Slot,
} from '@nightporter/protocol';
import { MemoryOplog, type OplogOptions } from './oplog.js';
import { NOBODY, compareRows, isUnsettled, viewOf, type StoredRow } from './stored-row.js';

/** The database's clock, in milliseconds. */
export type DatabaseClock = () => number;

/** An event as its transaction commits it; version, slot and digest are added. */
export interface CommittedEvent {
  readonly namespace: Namespace;
  readonly eventId: EventId;
  readonly source: string;
  readonly aggregateType: string;
  readonly aggregateId: string;
  readonly eventType: string;
  readonly topic: string;
  readonly payload: JsonValue;
  readonly headers?: EventHeaders;
  readonly eventVersion?: number;
  /** Default: see `defaultEventKey`. */
  readonly eventKey?: string;
}

function createdAtMs({ occurredAt }: StoredRow): number {
  return Date.parse(occurredAt);
}

/** Told of every change of a row, before and after. */
export type RowListener = (before: StoredRow | undefined, after: StoredRow | undefined) => void;

/** Every outbox of one cluster: rows, heads, archive and the log of changes. Each method is one atomic operation. */
export class MemoryOutbox {
  readonly oplog: MemoryOplog;
  onChanged: RowListener = () => undefined;
  readonly clock: DatabaseClock;
  readonly #rows = new Map<EventId, StoredRow>();
  readonly #archived = new Map<EventId, StoredRow>();
  readonly #heads = new Map<AggregateKey, number>();

  constructor(clock: DatabaseClock, options?: OplogOptions) {
    this.clock = clock;
    this.oplog = new MemoryOplog(options);
  }

  /** One business transaction: every event gets the next version of its aggregate. */
  commit(events: readonly CommittedEvent[]): readonly OutboxRow[] {
    return events.map((event) => {
      const stored = this.#newRow(event);
      this.#put(stored);
      const row = this.#view(stored);
      this.oplog.append({ kind: 'insert', row });
      return row;
    });
  }

  figures(): OutboxFigures {
    const of = (status: UnsettledStatus): UnsettledFigures => {
      const ages = this.rows().flatMap((row) => (row.status === status ? [this.clock() - createdAtMs(row)] : []));
      return { rows: ages.length, oldestAgeMs: ages.length === 0 ? null : Math.max(...ages) };
    };
    const unsettled = { PENDING: of('PENDING'), PROCESSING: of('PROCESSING'), FAILED: of('FAILED'), DEAD: of('DEAD') };
    return { unsettled, isCapped: false, history: { kind: 'unknown', reason: 'the memory is pruned by hand' } };
  }

  rows(): readonly StoredRow[] {
    return [...this.#rows.values()];
  }

  /** The row in outbox or archive. */
  find(eventId: EventId): StoredRow | undefined {
    return this.#rows.get(eventId) ?? this.#archived.get(eventId);
  }

  archived(): readonly StoredRow[] {
    return [...this.#archived.values()];
  }

  headOf(aggregate: AggregateKey): number {
    return this.#heads.get(aggregate) ?? 0;
  }

  heads(): ReadonlyMap<AggregateKey, number> {
    return this.#heads;
  }

  readUnsettled(
    request: { slot: Slot; after: SweepCursor | null; limit: number },
    viewer = NOBODY,
  ): readonly OutboxRow[] {
    const { slot, after, limit } = request;
    const rows = this.rows().filter((row) => row.slot === slot && isUnsettled(row));
    const behind = after === null ? rows : rows.filter((row) => compareRows(row, after) > 0);
    return behind
      .sort(compareRows)
      .slice(0, limit)
      .map((row) => this.#view(row, viewer));
  }

  readLanes(
    lanes: readonly { namespace: Namespace; aggregate: AggregateKey }[],
    limitPerAggregate: number,
    viewer = NOBODY,
  ): readonly OutboxRow[] {
    const found = lanes.flatMap(({ namespace, aggregate }) =>
      this.rows()
        .filter((row) => row.namespace === namespace && isUnsettled(row) && row.aggregate === aggregate)
        .sort(compareRows)
        .slice(0, limitPerAggregate),
    );
    return found.sort(compareRows).map((row) => this.#view(row, viewer));
  }

  lookUp(
    references: readonly RowReference[],
    viewer = NOBODY,
  ): ReadonlyMap<EventId, OutboxRow | 'archived' | 'missing'> {
    const found = new Map<EventId, OutboxRow | 'archived' | 'missing'>();
    for (const { eventId } of references) {
      const row = this.#rows.get(eventId);
      const elsewhere = this.#archived.has(eventId) ? 'archived' : 'missing';
      found.set(eventId, row === undefined ? elsewhere : this.#view(row, viewer));
    }
    return found;
  }

  busySlots(slots: readonly Slot[]): readonly Slot[] {
    const busy = new Set(
      this.rows()
        .filter(isUnsettled)
        .map((row) => row.slot),
    );
    return slots.filter((slot) => busy.has(slot));
  }

  takeBack({ slots, relay }: { slots: readonly Slot[]; relay: string }): number {
    const claimed = this.rows().filter((row) => row.status === 'PROCESSING' && slots.includes(row.slot));
    const foreign = claimed.filter((row) => row.claim?.relay !== relay);
    for (const row of foreign) this.#edit(row, { status: 'PENDING' });
    return foreign.length;
  }

  /** What nobody but a saboteur does. */
  claimAnyway(eventId: EventId, relay: string): void {
    const row = this.#rows.get(eventId);
    if (row !== undefined) this.#edit(row, this.#claim(relay));
  }

  mark(marks: readonly Mark[]): readonly MarkOutcome[] {
    return marks.map((mark) => this.#markOne(mark));
  }

  /** An operator's retry: a conditional edit of a DEAD row. */
  retryDead(eventId: EventId): OutboxActionOutcome {
    return this.#editDead(eventId, (row) => ({ ...row, status: 'PENDING', retryCount: 0, nextRetryAtMs: null }));
  }

  /** An operator's skip: a conditional edit of a DEAD row, upon which the relay publishes a tombstone. */
  skipDead(eventId: EventId): OutboxActionOutcome {
    return this.#editDead(eventId, (row) => ({
      ...row,
      status: 'PENDING',
      retryCount: 0,
      nextRetryAtMs: null,
      skipped: true,
    }));
  }

  /** Retention: moves a published row to the archive, or deletes it. */
  retire(eventId: EventId, how: 'archive' | 'delete'): boolean {
    const row = this.#rows.get(eventId);
    if (row?.status !== 'PUBLISHED') return false;
    if (how === 'archive') this.#archived.set(eventId, row);
    this.#delete(row);
    return true;
  }

  /** Deletes a row whatever its status, as a stray hand might. */
  deleteRow(eventId: EventId): void {
    const row = this.#rows.get(eventId);
    if (row !== undefined) this.#delete(row);
  }

  /** Drops an outbox collection with all its rows. */
  drop(namespace: Namespace): void {
    for (const row of this.rows()) if (row.namespace === namespace) this.#delete(row);
    this.oplog.append({ kind: 'drop' });
  }

  #markOne(mark: Mark): MarkOutcome {
    const row = this.#rows.get(mark.eventId);
    if (row === undefined) return { kind: 'missing' };
    switch (mark.kind) {
      case 'published':
        if (row.status !== 'PUBLISHED') this.#edit(row, this.#published(mark));
        return { kind: 'done' };
      case 'failed':
        return this.#markConditionally(row, mark.revision, {
          status: mark.status,
          retryCount: mark.retryCount,
          lastError: mark.error,
          nextRetryAtMs: mark.status === 'DEAD' ? null : this.clock() + mark.retryInMs,
        });
      case 'unanswered':
        return this.#markConditionally(row, mark.revision, { unanswered: true });
      case 'claimed':
        return this.#markConditionally(row, mark.revision, this.#claim(mark.relay));
    }
  }

  #claim(relay: string): Partial<StoredRow> {
    return { status: 'PROCESSING', nextRetryAtMs: null, claim: { relay, atMs: this.clock() } };
  }

  #published(mark: Mark & { kind: 'published' }): Partial<StoredRow> {
    const { messageId, topic, relay, form } = mark;
    const publication = { messageId, topic, relay, form };
    return { status: 'PUBLISHED', publishedAtMs: this.clock(), nextRetryAtMs: null, publication };
  }

  /** A repeat of a mark that was carried out finds the next revision with the very same values. */
  #markConditionally(row: StoredRow, revision: number, changes: Partial<StoredRow>): MarkOutcome {
    const repeated =
      row.revision === revision + 1 &&
      row.status === (changes.status ?? row.status) &&
      row.retryCount === (changes.retryCount ?? row.retryCount) &&
      row.unanswered === (changes.unanswered ?? row.unanswered) &&
      row.claim?.relay === (changes.claim ?? row.claim)?.relay;
    if (row.status === 'PUBLISHED') return { kind: 'refused', status: row.status };
    if (repeated) return { kind: 'done' };
    if (row.revision !== revision) return { kind: 'refused', status: row.status };
    this.#edit(row, changes);
    return { kind: 'done' };
  }

  #editDead(eventId: EventId, change: (row: StoredRow) => StoredRow): OutboxActionOutcome {
    const row = this.#rows.get(eventId);
    if (row === undefined) return { kind: 'missing' };
    if (row.status !== 'DEAD') return { kind: 'refused', status: row.status };
    this.#edit(row, change(row));
    return { kind: 'done', revision: row.revision + 1 };
  }

  #edit(row: StoredRow, changes: Partial<StoredRow>): void {
    this.#put({ ...row, ...changes, revision: row.revision + 1 });
    this.oplog.append({ kind: 'write' });
  }

  #put(row: StoredRow): void {
    const before = this.#rows.get(row.eventId);
    this.#rows.set(row.eventId, row);
    this.onChanged(before, row);
  }

  #delete(row: StoredRow): void {
    this.#rows.delete(row.eventId);
    this.onChanged(row, undefined);
  }

  #newRow(event: CommittedEvent): StoredRow {
    const key = aggregateKey(event);
    const version = aggregateVersion((this.#heads.get(key) ?? 0) + 1);
    this.#heads.set(key, version);
    const eventKey = event.eventKey ?? defaultEventKey(event);
    const row: StoredRow = {
      ...event,
      aggregate: key,
      eventVersion: event.eventVersion ?? 1,
      aggregateVersion: version,
      headers: event.headers ?? {},
      occurredAt: new Date(this.clock()).toISOString(),
      eventKey,
      slot: slotOf(eventKey),
      digest: '',
      status: 'PENDING',
      retryCount: 0,
      nextRetryAtMs: null,
      publishedAtMs: null,
      lastError: null,
      revision: 1,
      skipped: false,
      unanswered: false,
      publication: null,
      claim: null,
    };
    return { ...row, digest: digestOf(envelopeOf(this.#view(row), 'original')) };
  }

  #view(stored: StoredRow, viewer = NOBODY): OutboxRow {
    return viewOf(stored, { viewer, nowMs: this.clock() });
  }
}
