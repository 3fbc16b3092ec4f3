import type {
  CheckpointSave,
  GroupCommit,
  MemoryBroker,
  RelayDatabase,
  StoredMessage,
  StoredRow,
} from '../memory/index.js';
import type { PublishFailure, PublishRequest, RelayEvent } from '@nightporter/relay';
import { aggregateKey, type EventId } from '@nightporter/protocol';
import { CheckpointWatch } from './checkpoint-watch.js';
import type { SimulatedGroup } from './cluster.js';
import { GroupWatch } from './group-watch.js';
import type { Trace } from './trace.js';

export type Report = (rule: string, detail: string) => void;

export interface Watched {
  readonly database: RelayDatabase;
  readonly broker: MemoryBroker;
  readonly groups: readonly SimulatedGroup[];
  readonly report: Report;
  readonly trace: Trace;
}

export interface Landing {
  readonly eventId: EventId;
  readonly form: 'original' | 'tombstone';
  readonly digest: string;
}

/** Watches every server while the history goes on, and reports a broken promise in the moment that breaks it. */
export class Assertions {
  readonly landings: Landing[] = [];
  readonly committed: StoredRow[] = [];
  readonly #watched: Watched;
  readonly #landed = new Set<EventId>();
  readonly #eventByMessage = new Map<string, EventId>();
  readonly #places = new Map<string, EventId>();
  readonly #rows = new Map<EventId, StoredRow>();
  /** Permanent refusals since the event's row was last edited by an operator. */
  readonly #refusals = new Map<EventId, number>();
  readonly #checkpoints: CheckpointWatch;
  readonly #groups: ReadonlyMap<string, GroupWatch>;

  constructor(watched: Watched) {
    const { database, broker, groups, report } = watched;
    this.#watched = watched;
    this.#checkpoints = new CheckpointWatch(database.outbox, report);
    this.#groups = new Map(groups.map((group) => [group.name, new GroupWatch(group, this, report)]));
    database.outbox.onChanged = (before, after) => {
      this.#rowChanged(before, after);
    };
    database.outbox.oplog.onSkipped = (eventIds) => {
      this.#checkpoints.excuse(eventIds);
    };
    database.checkpoints.onSaved = (save) => {
      this.#saved(save);
    };
    database.groups.onAdvanced = (group, toMs) => {
      this.group(group).advanced(toMs, database.outbox.rows());
    };
    broker.onLanded = ({ request, message }) => {
      this.#messageLanded(request, message);
    };
    broker.onAcknowledged = ({ group, message }) => {
      const eventId = this.#eventByMessage.get(message.messageId) ?? null;
      this.#groups.get(group)?.acknowledged(message, eventId);
    };
  }

  group(name: string): GroupWatch {
    const watch = this.#groups.get(name);
    if (watch === undefined) throw new Error(`no group ${name} is simulated`);
    return watch;
  }

  groupCommitted(name: string, commit: GroupCommit): void {
    this.group(name).committed(commit);
  }

  /** The row of an event as it was when it committed; its content never changes. */
  rowOf(eventId: EventId): StoredRow | undefined {
    return this.#rows.get(eventId);
  }

  /** Whether the watermark of a group that came late, and so has a history to walk, has still to pass the row. */
  isAhead(group: string, { eventId }: StoredRow): boolean {
    const { groups, outbox } = this.#watched.database;
    const entry = groups.groups.get(group);
    const row = outbox.find(eventId);
    if (entry === undefined || entry.floorMs === 0 || row === undefined) return false;
    return row.publishedAtMs === null || row.publishedAtMs > entry.watermarkMs;
  }

  eventAt(aggregate: string, version: number): EventId | undefined {
    return this.#places.get(`${aggregate}#${version}`);
  }

  /** The shards whose slots a checkpoint stands for. */
  set shards(shards: ReadonlyMap<string, ReadonlySet<number>>) {
    this.#checkpoints.slotsByShard = shards;
  }

  /** Told by the broker of every refusal. */
  refused({ row }: PublishRequest, failure: PublishFailure): PublishFailure {
    this.#watched.trace.note(`broker refuses (${failure})`, () => nameOf(row));
    if (failure === 'permanent') this.#refusals.set(row.eventId, (this.#refusals.get(row.eventId) ?? 0) + 1);
    if (failure === 'topic') this.#checkpoints.topicRefused(row.topic);
    return failure;
  }

  /** Told of every pause; null stands for all topics. */
  paused(topic: string | null): void {
    this.#checkpoints.paused(topic);
  }

  /** Told by a relay of everything that it does. */
  relayTold(owner: string, event: RelayEvent): void {
    if (event.kind === 'published' || event.kind === 'send-failed') this.#checkpoints.sendEnded(owner, event);
  }

  #rowChanged(before: StoredRow | undefined, after: StoredRow | undefined): void {
    if (before === undefined && after !== undefined) {
      this.committed.push(after);
      this.#rows.set(after.eventId, after);
      this.#places.set(`${after.aggregate}#${after.aggregateVersion}`, after.eventId);
      this.#watched.trace.note('commit', () => nameOf(after));
      return;
    }
    if (before === undefined || after === undefined) return;
    this.#watched.trace.note(`row ${after.status}`, () => `${nameOf(after)} revision ${after.revision}`);
    this.#checkpoints.rowChanged(before, after);
    if (before.status === 'PUBLISHED' && after.status !== 'PUBLISHED') {
      this.#report('PUBLISHED always wins', `${nameOf(after)} became ${after.status}`);
    }
    if (before.publishedAtMs !== null && after.publishedAtMs !== before.publishedAtMs) {
      this.#report('publishedAt never changes', nameOf(after));
    }
    if (after.revision <= before.revision) this.#report('every change raises the revision', nameOf(after));
    if (after.status === 'PUBLISHED' && !this.#landed.has(after.eventId)) {
      this.#report('PUBLISHED means that the broker has it', nameOf(after));
    }
    this.#checkCharge(before, after);
  }

  /** I3: only the broker's refusals of this very event are counted against it. */
  #checkCharge(before: StoredRow, after: StoredRow): void {
    if (before.status === 'DEAD' && after.status === 'PENDING') this.#refusals.delete(after.eventId);
    const refusals = this.#refusals.get(after.eventId) ?? 0;
    if (after.retryCount > refusals) {
      this.#report('I3 no loss', `${nameOf(after)} is charged ${after.retryCount} times after ${refusals} refusals`);
    }
    if (after.status === 'DEAD' && refusals === 0)
      this.#report('I3 no loss', `${nameOf(after)} is DEAD without a refusal`);
  }

  #messageLanded({ row, relay }: PublishRequest, message: StoredMessage): void {
    const { eventId } = row;
    const key = aggregateKey(row);
    this.#watched.trace.note(`land ${row.form}`, () => `${nameOf(row)} by ${relay}`);
    const digest = message.properties['np-digest'] ?? '';
    this.landings.push({ eventId, form: row.form, digest });
    this.#eventByMessage.set(message.messageId, eventId);
    const committed = this.#rows.get(eventId);
    if (committed === undefined) this.#report('I1 atomic', `${nameOf(row)} landed without a commit`);
    if (row.form === 'tombstone' && this.#watched.database.outbox.find(eventId)?.skipped === false) {
      this.#report('I13 faithful', `${nameOf(row)} landed as a tombstone that nobody asked for`);
    }
    if (this.#landed.has(eventId)) return;
    this.#landed.add(eventId);
    const predecessor = this.#places.get(`${key}#${row.aggregateVersion - 1}`);
    if (predecessor !== undefined && !this.#landed.has(predecessor)) {
      this.#report('I4 order', `${nameOf(row)} first landed before version ${row.aggregateVersion - 1}, by ${relay}`);
    }
  }

  #saved(save: CheckpointSave): void {
    this.#watched.trace.note(`checkpoint ${save.shard}`, () => `epoch ${save.epoch} seq ${save.seq} ${save.token}`);
    const lease = this.#watched.database.leases.documents.get(save.shard);
    if (lease !== undefined && lease.epoch < save.epoch) {
      this.#report(
        'I6 fenced',
        `checkpoint of ${save.shard} saved by epoch ${save.epoch}, the lease is at ${lease.epoch}`,
      );
    }
    this.#checkpoints.saved(save);
  }

  #report(rule: string, detail: string): void {
    this.#watched.report(rule, detail);
  }
}

export function nameOf(row: { aggregateType: string; aggregateId: string; aggregateVersion: number }): string {
  return `${row.aggregateType}/${row.aggregateId}#${row.aggregateVersion}`;
}
