import { versionKey } from '@nightporter/consumer';
import { digestOf } from '@nightporter/contracts';
import type { GroupCommit, InboxDocument, StoredMessage, StoredRow } from '../memory/index.js';
import type { AggregateKey, EventId } from '@nightporter/protocol';
import type { Assertions, Report } from './assertions.js';
import { nameOf } from './assertions.js';
import type { SimulatedGroup } from './cluster.js';

/** What the ids of altered messages begin with: no promise holds for those. */
export const CORRUPT_COPY = 'corrupt-';

/** A ledger of one group's outcomes that never expires and believes nobody: I7, I8, I9 and what a position may say. */
export class GroupWatch {
  /** Outcomes in the order of their commits. */
  readonly settled = new Map<EventId, InboxDocument['outcome']>();
  readonly effects: EventId[] = [];
  readonly #group: SimulatedGroup;
  readonly #assertions: Assertions;
  readonly #report: Report;
  readonly #effects = new Set<string>();
  readonly #startVersions = new Map<AggregateKey, number>();

  constructor(group: SimulatedGroup, assertions: Assertions, report: Report) {
    this.#group = group;
    this.#assertions = assertions;
    this.#report = (rule, detail) => {
      report(rule, `${group.name}: ${detail}`);
    };
  }

  get startVersions(): ReadonlyMap<AggregateKey, number> {
    return this.#startVersions;
  }

  startAt(aggregate: AggregateKey, version: number): void {
    this.#startVersions.set(aggregate, version);
  }

  committed({ settled, effects }: GroupCommit): void {
    for (const record of settled) this.#settle(record);
    const applied = settled.filter((record) => record.outcome === 'applied').map((record) => record.eventId as string);
    for (const effect of effects) {
      if (this.#effects.has(effect)) this.#report('I7 effect once', `${effect} took effect twice`);
      if (!applied.includes(effect)) this.#report('I7 effect once', `${effect} took effect without its inbox record`);
      this.#effects.add(effect);
      this.effects.push(effect as EventId);
    }
    for (const eventId of applied) {
      if (!effects.includes(eventId)) this.#report('I7 effect once', `${eventId} is applied without its effect`);
    }
    this.#checkPositions();
  }

  /** `eventId` is null for a message that no relay has sent. */
  acknowledged(message: StoredMessage, eventId: EventId | null): void {
    if (eventId === null) {
      if (message.messageId.startsWith(CORRUPT_COPY)) return;
      const isKept = this.#group.memory.asides().some((aside) => aside.messageId === message.messageId);
      if (!isKept) this.#report('I9 ack last', `${message.messageId} was acknowledged and not set aside`);
      return;
    }
    const row = this.#assertions.rowOf(eventId);
    if (row === undefined) return;
    if (this.#isAccountedFor(row) || this.#assertions.isAhead(this.#group.name, row)) return;
    this.#report('I9 ack last', `${nameOf(row)} was acknowledged without a durable outcome`);
  }

  /** I14: the watermark never passes a published row that is neither settled nor parked. */
  advanced(toMs: number, rows: readonly StoredRow[]): void {
    for (const row of rows) {
      if (row.publishedAtMs === null || row.publishedAtMs > toMs || !this.#group.topics.includes(row.topic)) continue;
      if (this.#isAccountedFor(row)) continue;
      this.#report('I14 complete', `the watermark passed ${nameOf(row)}, which is neither settled nor parked`);
    }
  }

  #isAccountedFor({ aggregate, aggregateVersion, eventId }: StoredRow): boolean {
    if (this.settled.has(eventId) || aggregateVersion <= (this.#startVersions.get(aggregate) ?? 0)) return true;
    const parked = this.#group.memory.findParked(aggregate, aggregateVersion)?.event;
    return parked?.envelope.eventId === eventId && digestOf(parked.envelope) === parked.digest;
  }

  #settle({ eventId, aggregate, version, outcome }: InboxDocument): void {
    const before = this.settled.get(eventId);
    if (before !== undefined)
      this.#report('I7 effect once', `${versionKey(aggregate, version)} ${before}, then ${outcome}`);
    const start = this.#startVersions.get(aggregate) ?? 0;
    const predecessor = this.#assertions.eventAt(aggregate, version - 1);
    if (version - 1 > start && (predecessor === undefined || !this.settled.has(predecessor))) {
      this.#report(
        'I8 sequence',
        `${versionKey(aggregate, version)} ${outcome} before version ${version - 1} was settled`,
      );
    }
    if (version <= start)
      this.#report('I8 sequence', `${versionKey(aggregate, version)} is before the start, and ${outcome}`);
    this.settled.set(eventId, outcome);
  }

  /** A position is blocked exactly while the version right behind it is parked, and nothing below it is. */
  #checkPositions(): void {
    const parked = this.#group.memory.parked();
    for (const { event } of parked) {
      const { aggregate, envelope } = event;
      const { position } = this.#group.memory.positionOf(aggregate);
      if (envelope.aggregateVersion === position.version + 1 && position.state === 'open') {
        this.#report(
          'blocked means parked',
          `${versionKey(aggregate, position.version + 1)} is parked, its position open`,
        );
      }
      if (envelope.aggregateVersion <= position.version) {
        this.#report('blocked means parked', `${nameOf(envelope)} is parked, its position at ${position.version}`);
      }
    }
    for (const { aggregate, position } of this.#group.memory.positions()) {
      if (
        position.state === 'blocked' &&
        this.#group.memory.findParked(aggregate, position.version + 1) === undefined
      ) {
        this.#report(
          'blocked means parked',
          `${aggregate} is blocked at ${position.version}, nothing parked behind it`,
        );
      }
    }
  }
}
