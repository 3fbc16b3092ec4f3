import {
  chooseDue,
  isTried,
  versionKey,
  type AggregatePlace,
  type DeadLetterCopy,
  type EventPlace,
  type GapFinder,
  type GroupChange,
  type ClaimRequest,
  type ParkedEvent,
} from '@nightporter/consumer';
import { aggregateVersion, type AggregateKey, type AggregateVersion, type EventId } from '@nightporter/protocol';
import type { AsideDocument, GroupCommit, GroupDocument, InboxDocument, ParkedDocument } from './group-documents.js';
import { MemoryTransaction } from './group-transaction.js';
import type { DatabaseClock } from './outbox.js';
import { MemoryStarted } from './started.js';
import { VersionedStore } from './versioned-store.js';

type FoundGaps = Awaited<ReturnType<GapFinder['find']>>;

export const keys = {
  position: (aggregate: AggregateKey): string => `position ${aggregate}`,
  inbox: (eventId: EventId): string => `inbox ${eventId}`,
  inboxVersion: (aggregate: AggregateKey, version: number): string => `inbox-version ${versionKey(aggregate, version)}`,
  parked: (aggregate: AggregateKey, version: number): string => `parked ${versionKey(aggregate, version)}`,
  aside: (id: string): string => `aside ${id}`,
  copy: (id: string): string => `copy ${id}`,
  business: (document: string): string => `business ${document}`,
};

/** The documents of one consumer group in its own database. Each method is one atomic operation. */
export class MemoryGroup {
  readonly documents = new VersionedStore<GroupDocument>();
  readonly clock: DatabaseClock;
  readonly started = new MemoryStarted();
  /** Whether each dead letter leaves a copy that is to be sent. */
  copiesDeadLetters = false;
  /** Effects in the order of their commits. */
  readonly effects: string[] = [];
  /** Told of every commit, in the moment of the commit. */
  onCommitted: (commit: GroupCommit) => void = () => undefined;
  #seq = 0;

  constructor(clock: DatabaseClock) {
    this.clock = clock;
  }

  get seq(): number {
    return this.#seq;
  }

  begin(): MemoryTransaction {
    return new MemoryTransaction(this);
  }

  /** Commits what a transaction wrote; whoever calls has checked it for conflicts. */
  apply(writes: ReadonlyMap<string, GroupDocument | undefined>, commit: GroupCommit): void {
    this.#write(...writes);
    this.effects.push(...commit.effects);
    this.onCommitted(commit);
  }

  positionOf(aggregate: AggregateKey): GroupDocument & { kind: 'position' } {
    const stored = this.documents.latest(keys.position(aggregate));
    if (stored?.kind === 'position') return stored;
    return { kind: 'position', aggregate, position: { version: 0, startVersion: 0, state: 'open' } };
  }

  positions(): readonly (GroupDocument & { kind: 'position' })[] {
    return [...this.documents.entries()].flatMap(([, document]) => (document.kind === 'position' ? [document] : []));
  }

  parked(): readonly ParkedDocument[] {
    return [...this.documents.entries()].flatMap(([, document]) =>
      document.kind === 'parked' ? [document.parked] : [],
    );
  }

  inbox(): readonly InboxDocument[] {
    return [...this.documents.entries()].flatMap(([, document]) => (document.kind === 'inbox' ? [document.inbox] : []));
  }

  /** Duplicates for certain, each counted: settled at that very place, with the position of its aggregate at or behind it. */
  countRepeats(events: readonly EventPlace[]): ReadonlySet<EventId> {
    const repeats = new Set<EventId>();
    for (const { aggregate, envelope } of events) {
      const key = keys.inbox(envelope.eventId);
      const stored = this.documents.latest(key);
      if (stored?.kind !== 'inbox' || stored.inbox.aggregate !== aggregate) continue;
      if (stored.inbox.version !== envelope.aggregateVersion) continue;
      if (this.positionOf(aggregate).position.version < envelope.aggregateVersion) continue;
      repeats.add(envelope.eventId);
      this.#write([key, { kind: 'inbox', inbox: { ...stored.inbox, duplicates: stored.inbox.duplicates + 1 } }]);
    }
    return repeats;
  }

  asides(): readonly AsideDocument[] {
    return [...this.documents.entries()].flatMap(([, document]) => (document.kind === 'aside' ? [document.aside] : []));
  }

  claimDue(request: ClaimRequest): readonly ParkedEvent[] {
    const nowMs = this.clock();
    const due = this.parked().filter((row) => row.state === 'retry' && (row.nextRetryAtMs ?? 0) <= nowMs);
    const inOrder = due.sort((left, right) => (left.nextRetryAtMs ?? 0) - (right.nextRetryAtMs ?? 0));
    return chooseDue(inOrder, request).map((row) => this.#claim(row, request));
  }

  #claim(row: ParkedDocument, { claimMs }: ClaimRequest): ParkedEvent {
    const nextRetryAtMs = this.clock() + claimMs;
    const claimed = this.#writeParked({ ...row, attempts: row.attempts + 1, nextRetryAtMs, isRunning: true });
    return { ...viewOf(claimed), isUnanswered: row.isRunning === true };
  }

  giveBack(claimed: readonly ParkedEvent[]): void {
    for (const claim of claimed) {
      const row = this.findParked(claim.event.aggregate, claim.event.envelope.aggregateVersion);
      if (row?.revision !== claim.revision) continue;
      const isSuspect = claim.isSuspect ?? false;
      this.#writeParked({
        ...row,
        attempts: row.attempts - 1,
        nextRetryAtMs: this.clock(),
        isRunning: false,
        isSuspect,
      });
    }
  }

  waitingBehind({ aggregate, version }: AggregatePlace, limit: number): readonly ParkedEvent[] {
    const waiting: ParkedEvent[] = [];
    while (waiting.length < limit) {
      const row = this.findParked(aggregate, version + 1 + waiting.length);
      const waits = (row?.state === 'gap' || row?.state === 'behind') && !isTried(row);
      if (row === undefined || !waits) break;
      waiting.push(viewOf(row));
    }
    return waiting;
  }

  wake(request: { olderThanMs: number; limit: number }): number {
    const nowMs = this.clock();
    const stranded = this.parked().filter((row) => {
      const { version } = this.positionOf(row.event.aggregate).position;
      const waiting = row.state === 'gap' || row.state === 'behind';
      return (
        waiting && row.event.envelope.aggregateVersion <= version + 1 && nowMs - row.parkedAtMs > request.olderThanMs
      );
    });
    const woken = stranded.slice(0, request.limit);
    for (const row of woken) {
      this.#writeParked({ ...row, state: 'retry', nextRetryAtMs: nowMs });
      const aggregate = row.event.aggregate;
      const { position } = this.positionOf(aggregate);
      if (row.event.envelope.aggregateVersion === position.version + 1) {
        const blocked: GroupDocument = { kind: 'position', aggregate, position: { ...position, state: 'blocked' } };
        this.#write([keys.position(aggregate), blocked]);
      }
    }
    return woken.length;
  }

  findGaps(request: { olderThanMs: number; after: AggregateKey | null; limit: number }): FoundGaps {
    const { after, limit, olderThanMs } = request;
    const nowMs = this.clock();
    const lowest = new Map<AggregateKey, number>();
    for (const { event, parkedAtMs, state } of this.parked()) {
      const waits = (state === 'gap' || state === 'behind') && nowMs - parkedAtMs >= olderThanMs;
      if (!waits || (after !== null && event.aggregate <= after)) continue;
      const version = event.envelope.aggregateVersion;
      lowest.set(event.aggregate, Math.min(version, lowest.get(event.aggregate) ?? version));
    }
    const looked = [...lowest].sort(([left], [right]) => (left < right ? -1 : 1)).slice(0, limit);
    const gaps = looked.flatMap(([aggregate, version]) => {
      const { position } = this.positionOf(aggregate);
      if (position.state === 'blocked' || version <= position.version + 1) return [];
      return [{ aggregate, from: aggregateVersion(position.version + 1), to: aggregateVersion(version - 1) }];
    });
    return { gaps, after: looked.length < limit ? null : (looked.at(-1)?.[0] ?? null) };
  }

  claimCopy(claimMs: number): DeadLetterCopy | null {
    const nowMs = this.clock();
    const waiting = this.copies().filter(({ nextTryAtMs }) => nextTryAtMs <= nowMs);
    const [next] = waiting.sort((left, right) => left.nextTryAtMs - right.nextTryAtMs);
    if (next === undefined) return null;
    this.#write([keys.copy(next.copy.id), { ...next, nextTryAtMs: nowMs + claimMs }]);
    return next.copy;
  }

  removeCopy(id: string): void {
    this.#write([keys.copy(id), undefined]);
  }

  /** Dead letters of which a copy is yet to be sent. */
  copies(): (GroupDocument & { kind: 'copy' })[] {
    return [...this.documents.entries()].flatMap(([, document]) => (document.kind === 'copy' ? [document] : []));
  }

  /** An operator's retry of a dead letter: conditional on its being dead. */
  retryDead(aggregate: AggregateKey, version: AggregateVersion): boolean {
    const row = this.findParked(aggregate, version);
    if (row?.state !== 'dead') return false;
    this.#writeParked({ ...row, state: 'retry', attempts: 0, nextRetryAtMs: this.clock(), isRunning: false });
    return true;
  }

  /** An operator's skip of a dead letter: settles it and makes its successor due, in one transaction. */
  skipDead(aggregate: AggregateKey, version: AggregateVersion): boolean {
    const row = this.findParked(aggregate, version);
    const { position } = this.positionOf(aggregate);
    if (row?.state !== 'dead' || position.version + 1 !== version) return false;
    if (this.documents.latest(keys.inbox(row.event.envelope.eventId)) !== undefined) return false;
    const next = this.findParked(aggregate, version + 1);
    const changes: GroupChange[] = [
      { kind: 'settle', event: row.event, outcome: 'skipped', attempts: row.attempts },
      { kind: 'unpark', aggregate, version },
      {
        kind: 'position',
        aggregate,
        position: { ...position, version, state: next === undefined ? 'open' : 'blocked' },
      },
    ];
    if (next !== undefined)
      changes.push({ kind: 'make-due', aggregate, version: next.event.envelope.aggregateVersion });
    const transaction = this.begin();
    transaction.save(changes);
    transaction.commit();
    return true;
  }

  /** What a registration `from: now` writes: everything up to `version` is before the start. */
  startAt(aggregate: AggregateKey, version: number): void {
    const position = { version, startVersion: version, state: 'open' } as const;
    this.#write([keys.position(aggregate), { kind: 'position', aggregate, position }]);
  }

  /** Deletes a position document, as no part of the protocol ever does. */
  losePosition(aggregate: AggregateKey): void {
    this.#write([keys.position(aggregate), undefined]);
  }

  /** Lets inbox records expire, as the TTL index does. */
  expireInbox(olderThanMs: number): void {
    const nowMs = this.clock();
    for (const record of this.inbox()) {
      if (nowMs - record.processedAtMs <= olderThanMs) continue;
      this.#write(
        [keys.inbox(record.eventId), undefined],
        [keys.inboxVersion(record.aggregate, record.version), undefined],
      );
    }
  }

  findParked(aggregate: AggregateKey, version: number): ParkedDocument | undefined {
    const stored = this.documents.latest(keys.parked(aggregate, version));
    return stored?.kind === 'parked' ? stored.parked : undefined;
  }

  #writeParked(row: ParkedDocument): ParkedDocument {
    const parked = { ...row, revision: row.revision + 1 };
    this.#write([keys.parked(row.event.aggregate, row.event.envelope.aggregateVersion), { kind: 'parked', parked }]);
    return parked;
  }

  #write(...writes: readonly (readonly [string, GroupDocument | undefined])[]): void {
    this.#seq += 1;
    for (const [key, document] of writes) this.documents.put(key, document, this.#seq);
  }
}

export function viewOf(row: ParkedDocument): ParkedEvent {
  const { attempts, event, isSuspect, revision, state } = row;
  return { event, state, attempts, revision, ...(isSuspect === true ? { isSuspect } : {}) };
}
