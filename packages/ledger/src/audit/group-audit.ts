import { createLedgerRows, guarded, type GroupDocument, type LedgerRow } from '@nightporter/mongo';
import { aggregateKey, eventId, type EventId } from '@nightporter/protocol';
import type { GroupPlace, ProducerPlace } from '../questions/deployment.js';
import type { Difference, GroupAudit } from './contract.js';
import type { Findings } from './findings.js';
import { readGroupBatch } from './group-batch.js';
import { judgeRow, type RowFacts, type RowVerdict, type Rule } from './judge.js';
import { OPEN_MAX, newMark, readMark, writeMark, type AuditMark } from './mark.js';
import type { PublishedRow } from './rows.js';

export type Registration = Pick<GroupDocument, '_id' | 'topics' | 'watermark' | 'registeredAt'>;

interface Options {
  readonly home: GroupPlace;
  readonly producer: ProducerPlace;
  readonly registration: Registration;
  readonly rule: Rule;
  readonly findings: Findings;
}

type Counts = Record<RowVerdict['kind'], number>;

const WRITE_EVERY = 20;

/** Compares published rows with what one group has of them, batch by batch, and moves the group's mark. */
export class GroupComparison {
  readonly #options: Options;
  /** As it was when this audit began: its counts go on from there. */
  readonly #base: AuditMark;
  readonly #counts: Counts = { settled: 0, 'before-start': 0, expired: 0, 'in-flight': 0, different: 0 };
  readonly #open: EventId[] = [];
  #fresh = 0;
  #comparedToMs: number;
  #revision: number;
  #isMarked = true;
  #batches = 0;

  private constructor(options: Options, mark: AuditMark) {
    this.#options = options;
    this.#base = mark;
    this.#revision = mark.revision;
    this.#comparedToMs = mark.comparedTo.getTime();
  }

  /** Begins where the last audit ended, or anew. Looks first at what was left open. */
  static async begin(options: Options, isFull: boolean): Promise<GroupComparison> {
    const { home, producer, registration } = options;
    const standing = await readMark(home, producer.database, registration);
    const mark = isFull ? { ...newMark(producer.database, registration), revision: standing.revision } : standing;
    const comparison = new GroupComparison(options, mark);
    await comparison.#lookAgain(mark.open);
    return comparison;
  }

  get afterMs(): number {
    return this.#comparedToMs;
  }

  /** Rows of one batch; those that this group has compared before are passed over. */
  async compare(batch: readonly PublishedRow[], untilMs: number): Promise<void> {
    const { topics } = this.#options.registration;
    const rows = batch.filter(
      ({ publishedAt, topic }) => publishedAt.getTime() > this.#comparedToMs && topics.includes(topic),
    );
    this.#fresh += rows.length;
    await this.#judge(rows);
    this.#comparedToMs = Math.max(this.#comparedToMs, untilMs);
    this.#batches += 1;
    if (this.#batches % WRITE_EVERY === 0) await this.save();
  }

  /** Puts the mark where the comparison is, unless too much is open. */
  async save(): Promise<void> {
    if (this.#open.length > OPEN_MAX) this.#isMarked = false;
    if (!this.#isMarked) return;
    const { home } = this.#options;
    const mark = { ...this.#base, ...this.#totals(), comparedTo: new Date(this.#comparedToMs), open: this.#open };
    const isWritten = await writeMark(home, { ...mark, revision: this.#revision });
    if (isWritten) this.#revision += 1;
    else this.#isMarked = false;
  }

  /** Whatever is not to be relied upon is not marked. */
  distrust(): void {
    this.#isMarked = false;
  }

  report(): GroupAudit {
    const { home, producer } = this.#options;
    return {
      group: home.group,
      producer: producer.database,
      comparedTo: new Date(this.#comparedToMs),
      ...this.#totals(),
      publishedInThisRun: this.#fresh,
      inFlight: this.#counts['in-flight'],
      different: this.#counts.different,
      isMarked: this.#isMarked,
    };
  }

  #totals(): Pick<AuditMark, 'published' | 'settled' | 'beforeStart' | 'expired'> {
    const { beforeStart, expired, published, settled } = this.#base;
    return {
      published: published + this.#fresh,
      settled: settled + this.#counts.settled,
      beforeStart: beforeStart + this.#counts['before-start'],
      expired: expired + this.#counts.expired,
    };
  }

  async #judge(rows: readonly PublishedRow[]): Promise<void> {
    if (rows.length === 0) return;
    const { rule } = this.#options;
    const facts = await this.#read(rows);
    const doubtful: PublishedRow[] = [];
    for (const [index, row] of rows.entries()) {
      const verdict = judgeRow(factsAt(facts, index), rule);
      if (verdict.kind === 'different') doubtful.push(row);
      else this.#count(row, verdict);
    }
    await this.#confirm(doubtful);
  }

  /** The group works on while it is read: only what looks different twice is. */
  async #confirm(rows: readonly PublishedRow[]): Promise<void> {
    if (rows.length === 0) return;
    const [first, second] = [await this.#read(rows), await this.#read(rows)];
    for (const [index, row] of rows.entries()) {
      const verdicts = [first, second].map((facts) => judgeRow(factsAt(facts, index), this.#options.rule));
      this.#count(row, verdicts.find(({ kind }) => kind !== 'different') ?? (verdicts[1] as RowVerdict));
    }
  }

  #count(row: PublishedRow, verdict: RowVerdict): void {
    this.#counts[verdict.kind] += 1;
    if (verdict.kind !== 'different' && verdict.kind !== 'in-flight') return;
    this.#open.push(row._id);
    if (verdict.kind === 'different') this.#options.findings.add(this.#differenceOf(row, verdict));
  }

  #differenceOf(row: PublishedRow, { because, difference }: Extract<RowVerdict, { kind: 'different' }>): Difference {
    const { home, producer } = this.#options;
    return {
      kind: difference,
      producer: producer.database,
      group: home.group,
      eventId: row._id,
      aggregate: aggregateKey(row),
      version: row.aggregateVersion,
      text: `Group ${home.group}: ${because}.`,
    };
  }

  #read(rows: readonly PublishedRow[]): Promise<readonly RowFacts[]> {
    const { home, registration } = this.#options;
    const watermarkMs = registration.watermark.getTime();
    return guarded(`comparing with group ${home.group}`, () => readGroupBatch(home, rows, watermarkMs));
  }

  /** They were counted as published when they were compared first. One that is gone was deleted by retention, so settled or forced. */
  async #lookAgain(open: readonly EventId[]): Promise<void> {
    const ledger = createLedgerRows(this.#options.producer);
    const rows: PublishedRow[] = [];
    for (const id of open) {
      const found: LedgerRow | null = await ledger.findEvent(eventId(id));
      if (found?.kind === 'row' && found.document.publishedAt !== null) rows.push(found.document as PublishedRow);
      else if (found !== null) this.#open.push(id);
      else this.#counts.expired += 1;
    }
    await this.#judge(rows);
  }
}

function factsAt(facts: readonly RowFacts[], index: number): RowFacts {
  const found = facts[index];
  if (found === undefined) throw new RangeError(`no facts of row ${index}`);
  return found;
}
