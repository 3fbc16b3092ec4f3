import {
  CONSUMER_COLLECTIONS,
  createLedgerRows,
  durableDatabase,
  guarded,
  type GroupDocument,
  type LedgerRow,
  type PositionDocument,
} from '@nightporter/mongo';
import { aggregateKey } from '@nightporter/protocol';
import type { GroupPlace, ProducerPlace } from '../questions/deployment.js';
import type { Difference, GroupAudit } from './contract.js';
import type { Findings } from './findings.js';
import { positionsOf, readGroupBatch, risingPositions, type Positions } from './group-batch.js';
import { judgeRow, type RowFacts, type RowVerdict, type Rule } from './judge.js';
import { OPEN_MAX, newMark, readMark, writeMark, type AuditMark, type OpenEvent } from './mark.js';
import type { PublishedRow } from './rows.js';

export type Registration = Pick<GroupDocument, '_id' | 'topics' | 'watermark' | 'registeredAt'>;

interface Options {
  readonly home: GroupPlace;
  readonly producer: ProducerPlace;
  readonly registration: Registration;
  readonly rule: Rule;
  readonly findings: Findings;
  readonly notes: string[];
}

type Counts = Record<RowVerdict['kind'], number>;

/** Compares published rows with what one group has of them, batch by batch, and moves the group's mark. */
export class GroupComparison {
  readonly #options: Options;
  /** As it was when this audit began: its counts go on from there. */
  readonly #base: AuditMark;
  readonly #counts: Counts = { settled: 0, 'before-start': 0, expired: 0, 'in-flight': 0, different: 0 };
  readonly #open: OpenEvent[] = [];
  readonly #positions: Positions;
  #fresh = 0;
  #comparedToMs: number;
  #revision: number;
  #isMarked = true;

  private constructor(options: Options, mark: AuditMark) {
    this.#options = options;
    this.#base = mark;
    this.#positions = risingPositions(options.home);
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
    const facts = await this.#read(rows, this.#positions);
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
    const { home } = this.#options;
    const again = (): Promise<readonly RowFacts[]> => this.#read(rows, risingPositions(home));
    const [first, second] = [await again(), await again()];
    for (const [index, row] of rows.entries()) {
      const verdicts = [first, second].map((facts) => judgeRow(factsAt(facts, index), this.#options.rule));
      this.#count(row, verdicts.find(({ kind }) => kind !== 'different') ?? (verdicts[1] as RowVerdict));
    }
  }

  #count(row: PublishedRow, verdict: RowVerdict): void {
    this.#counts[verdict.kind] += 1;
    if (verdict.kind !== 'different' && verdict.kind !== 'in-flight') return;
    const event = { eventId: row._id, aggregate: aggregateKey(row), version: row.aggregateVersion };
    this.#open.push(event);
    if (verdict.kind === 'different') this.#options.findings.add(this.#differenceOf(event, verdict));
  }

  #differenceOf(
    event: OpenEvent,
    { because, difference, mendIn }: Extract<RowVerdict, { kind: 'different' }>,
  ): Difference {
    const { home, producer } = this.#options;
    const { database, group } = home;
    return {
      kind: difference,
      producer: producer.database,
      group,
      ...event,
      text: `Group ${group}: ${because}.`,
      mend: mendIn({ ...event, group, database }),
    };
  }

  #read(rows: readonly PublishedRow[], positions: Positions): Promise<readonly RowFacts[]> {
    const { home, registration } = this.#options;
    const watermarkMs = registration.watermark.getTime();
    return guarded(`comparing with group ${home.group}`, () => readGroupBatch({ home, positions, watermarkMs }, rows));
  }

  /** They were counted as published when they were compared first. */
  async #lookAgain(open: readonly OpenEvent[]): Promise<void> {
    const { home, notes, producer } = this.#options;
    const ledger = createLedgerRows(producer);
    const rows: PublishedRow[] = [];
    let unread = 0;
    for (const event of open) {
      const found: LedgerRow | null = await ledger.findEvent(event.eventId);
      if (found === null) await this.#countDeleted(event);
      else if (found.kind === 'row' && found.document.publishedAt !== null) rows.push(found.document as PublishedRow);
      else {
        this.#open.push(event);
        this.#counts['in-flight'] += 1;
        unread += 1;
      }
    }
    if (unread > 0)
      notes.push(
        `Group ${home.group}: open events of ${producer.database} that count as in flight, since their rows cannot be read from here or are not published any more: ${unread}.`,
      );
    await this.#judge(rows);
  }

  /** Retention may have been forced, or somebody has deleted the row: only the position tells whether the group has got over it. */
  async #countDeleted(event: OpenEvent): Promise<void> {
    const { findings, home } = this.#options;
    const { aggregate, version } = event;
    const positions = durableDatabase(home.client, home.database).collection<PositionDocument>(
      CONSUMER_COLLECTIONS.positions,
    );
    const position = (await positionsOf(positions, home.group, [aggregate])).get(aggregate);
    const reached = Math.max(position?.version ?? 0, position?.startVersion ?? 0);
    if (reached >= version) {
      this.#counts.expired += 1;
      return;
    }
    this.#counts.different += 1;
    this.#open.push(event);
    const because = `the row of version ${version} was deleted, and its position is ${reached}`;
    const mendIn = (): null => null;
    findings.add(this.#differenceOf(event, { kind: 'different', difference: 'deleted-unsettled', because, mendIn }));
  }
}

function factsAt(facts: readonly RowFacts[], index: number): RowFacts {
  const found = facts[index];
  if (found === undefined) throw new RangeError(`no facts of row ${index}`);
  return found;
}
