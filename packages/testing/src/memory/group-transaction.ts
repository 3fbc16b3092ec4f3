import {
  versionKey,
  type EventPlace,
  type GroupChange,
  type GroupState,
  type IncomingEvent,
} from '@nightporter/consumer';
import type { JsonValue } from '@nightporter/contracts';
import { NightporterError } from '@nightporter/protocol';
import type { GroupDocument, InboxDocument, ParkedDocument } from './group-documents.js';
import { keys, viewOf, type MemoryGroup } from './group.js';
import type { CommittedEvent } from './outbox.js';

/**
 * One transaction: it reads the documents as they were at its first operation, keeps its writes to itself, and commits
 * them all or, when one of the documents has changed since, none: the first committer wins.
 */
export class MemoryTransaction {
  readonly #group: MemoryGroup;
  readonly #writes = new Map<string, GroupDocument | undefined>();
  readonly #settled: InboxDocument[] = [];
  readonly #effects: string[] = [];
  readonly #emitted: CommittedEvent[] = [];
  #snapshot: number | undefined;

  constructor(group: MemoryGroup) {
    this.#group = group;
  }

  load(events: readonly EventPlace[]): GroupState {
    const positions: [IncomingEvent['aggregate'], (GroupDocument & { kind: 'position' })['position']][] = [];
    const byEvent: InboxDocument[] = [];
    const byVersion: [string, InboxDocument][] = [];
    const parked = new Map<string, ReturnType<typeof viewOf>>();
    for (const { aggregate, envelope } of events) {
      const position = this.#read(keys.position(aggregate));
      if (position?.kind === 'position') positions.push([aggregate, position.position]);
      const record = this.#read(keys.inbox(envelope.eventId));
      if (record?.kind === 'inbox') byEvent.push(record.inbox);
      const holder = this.#read(keys.inboxVersion(aggregate, envelope.aggregateVersion));
      const held = holder?.kind === 'inbox-version' ? this.#read(keys.inbox(holder.eventId)) : undefined;
      if (held?.kind === 'inbox') byVersion.push([versionKey(aggregate, envelope.aggregateVersion), held.inbox]);
      for (const version of [envelope.aggregateVersion, envelope.aggregateVersion + 1]) {
        const row = this.#read(keys.parked(aggregate, version));
        if (row?.kind === 'parked') parked.set(versionKey(aggregate, version), viewOf(row.parked));
      }
    }
    return {
      positions: new Map(positions),
      inboxByEvent: new Map(byEvent.map((record) => [record.eventId, record])),
      inboxByVersion: new Map(byVersion),
      parked,
      nowMs: this.#group.clock(),
    };
  }

  save(changes: readonly GroupChange[]): void {
    for (const change of changes) this.#change(change);
  }

  effect(key: string): void {
    this.#begin();
    this.#effects.push(key);
  }

  emit(event: CommittedEvent): void {
    this.#begin();
    this.#emitted.push(event);
  }

  readBusiness(document: string): JsonValue | undefined {
    const stored = this.#read(keys.business(document));
    return stored?.kind === 'business' ? stored.value : undefined;
  }

  writeBusiness(document: string, value: JsonValue): void {
    this.#write(keys.business(document), { kind: 'business', value });
  }

  commit(): void {
    const snapshot = this.#begin();
    for (const key of this.#writes.keys()) if (this.#group.documents.changedSince(key, snapshot)) throw conflict(key);
    const commit = { settled: this.#settled, effects: this.#effects, emitted: this.#emitted };
    this.#group.apply(this.#writes, commit);
  }

  #change(change: GroupChange): void {
    switch (change.kind) {
      case 'settle':
        this.#settle(change);
        return;
      case 'position': {
        const { aggregate, position } = change;
        this.#write(keys.position(aggregate), { kind: 'position', aggregate, position });
        return;
      }
      case 'count-duplicate': {
        const key = keys.inbox(change.eventId);
        const stored = this.#read(key);
        if (stored?.kind !== 'inbox') return;
        this.#write(key, { kind: 'inbox', inbox: { ...stored.inbox, duplicates: stored.inbox.duplicates + 1 } });
        return;
      }
      case 'park':
        this.#park(change);
        return;
      case 'make-due':
        this.#editParked(change, (row) =>
          row.state === 'dead' ? row : { ...row, state: 'retry', nextRetryAtMs: this.#group.clock() },
        );
        return;
      case 'unpark': {
        const key = keys.parked(change.aggregate, change.version);
        if (this.#read(key) !== undefined) this.#write(key, undefined);
        return;
      }
      case 'set-aside': {
        const { id, topic, messageId, body, properties, failure } = change;
        const stored = this.#read(keys.aside(id));
        const aside =
          stored?.kind === 'aside'
            ? { ...stored.aside, count: stored.aside.count + 1 }
            : { id, topic, messageId, body, properties, failure, count: 1 };
        this.#write(keys.aside(change.id), { kind: 'aside', aside });
      }
    }
  }

  /** The inbox is unique by event and by (aggregate, version): a second record aborts the transaction. */
  #settle({ event, outcome, attempts }: GroupChange & { kind: 'settle' }): void {
    const { aggregate, envelope } = event;
    const byEvent = keys.inbox(envelope.eventId);
    const byVersion = keys.inboxVersion(aggregate, envelope.aggregateVersion);
    if (this.#read(byEvent) !== undefined) throw conflict(byEvent);
    if (this.#read(byVersion) !== undefined) throw conflict(byVersion);
    const inbox: InboxDocument = {
      eventId: envelope.eventId,
      aggregate,
      version: envelope.aggregateVersion,
      outcome,
      attempts,
      duplicates: 0,
      processedAtMs: this.#group.clock(),
    };
    this.#write(byEvent, { kind: 'inbox', inbox });
    this.#write(byVersion, { kind: 'inbox-version', eventId: envelope.eventId });
    this.#settled.push(inbox);
  }

  #park({ event, state, attempts, retryInMs, failure, replaces, isSuspect }: GroupChange & { kind: 'park' }): void {
    const nowMs = this.#group.clock();
    const key = keys.parked(event.aggregate, event.envelope.aggregateVersion);
    const stored = this.#read(key);
    const before = stored?.kind === 'parked' ? stored.parked : undefined;
    const parked: ParkedDocument = {
      event,
      state,
      attempts,
      failure,
      isSuspect: isSuspect ?? false,
      nextRetryAtMs: retryInMs === null ? null : nowMs + retryInMs,
      parkedAtMs: (replaces === true ? undefined : before?.parkedAtMs) ?? nowMs,
      revision: (before?.revision ?? 0) + 1,
    };
    this.#write(key, { kind: 'parked', parked });
    if (state !== 'dead' || !this.#group.copiesDeadLetters) return;
    const id = `${event.envelope.eventId} ${parked.revision} ${nowMs}`;
    const copy = { id, group: 'in memory', event, attempts, failure, diedAtMs: nowMs };
    this.#write(keys.copy(id), { kind: 'copy', copy, nextTryAtMs: nowMs });
  }

  #editParked(
    { aggregate, version }: { aggregate: IncomingEvent['aggregate']; version: number },
    edit: (row: ParkedDocument) => ParkedDocument,
  ): void {
    const key = keys.parked(aggregate, version);
    const stored = this.#read(key);
    if (stored?.kind !== 'parked') return;
    const edited = edit(stored.parked);
    if (edited === stored.parked) return;
    this.#write(key, { kind: 'parked', parked: { ...edited, revision: edited.revision + 1 } });
  }

  #begin(): number {
    this.#snapshot ??= this.#group.seq;
    return this.#snapshot;
  }

  #read(key: string): GroupDocument | undefined {
    const snapshot = this.#begin();
    return this.#writes.has(key) ? this.#writes.get(key) : this.#group.documents.at(key, snapshot);
  }

  #write(key: string, document: GroupDocument | undefined): void {
    this.#begin();
    this.#writes.set(key, document);
  }
}

function conflict(key: string): NightporterError {
  return new NightporterError('NP_TRANSACTION_CONFLICT', `${key} was changed by a concurrent transaction`);
}
