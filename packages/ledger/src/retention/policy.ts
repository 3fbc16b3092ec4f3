/** What retention may take: pure, so that every rule is a table in the test. Moments are milliseconds since 1970 on the database's clock. */

/** How far a registered group has got. */
export interface Standing {
  readonly group: string;
  readonly topics: readonly string[];
  /** Whatever was published up to here is settled or parked in the group. */
  readonly watermarkMs: number;
}

export interface Rule {
  readonly nowMs: number;
  /** How long a published row stays in any case. */
  readonly afterMs: number;
  /** Rows so close below a watermark stay: the group's sweep reads that much again, for marks that became visible late. */
  readonly marginMs: number;
  /** Whether an operator has said that watermarks do not matter. */
  readonly forced: boolean;
}

/** Rows of a topic that were published before `beforeMs` may go, and what says so. */
export type Limit =
  | { readonly kind: 'age'; readonly beforeMs: number }
  | { readonly kind: 'watermark'; readonly beforeMs: number; readonly group: string; readonly watermarkMs: number }
  /** Nobody is registered for the topic, so nobody is known to have read it: all of it stays. */
  | { readonly kind: 'no-group'; readonly beforeMs: number };

const NEVER = Number.NEGATIVE_INFINITY;

/** The age, or the watermark of the group that is furthest behind, whatever is earlier. */
export function limitOf(topic: string, standings: readonly Standing[], rule: Rule): Limit {
  const byAge: Limit = { kind: 'age', beforeMs: rule.nowMs - rule.afterMs };
  if (rule.forced) return byAge;
  let last: Standing | null = null;
  for (const standing of standings) {
    if (standing.topics.includes(topic) && (last === null || standing.watermarkMs < last.watermarkMs)) last = standing;
  }
  if (last === null) return { kind: 'no-group', beforeMs: NEVER };
  const beforeMs = last.watermarkMs - rule.marginMs;
  if (beforeMs >= byAge.beforeMs) return byAge;
  return { kind: 'watermark', beforeMs, group: last.group, watermarkMs: last.watermarkMs };
}

/** Nothing that was published at or after this moment may go, whatever its topic. */
export function highestLimitMs(standings: readonly Standing[], rule: Rule): number {
  if (rule.forced) return rule.nowMs - rule.afterMs;
  const topics = new Set(standings.flatMap((standing) => standing.topics));
  return Math.max(NEVER, ...[...topics].map((topic) => limitOf(topic, standings, rule).beforeMs));
}

export function mayGo(
  row: { readonly topic: string; readonly publishedAt: Date },
  standings: readonly Standing[],
  rule: Rule,
): boolean {
  return row.publishedAt.getTime() < limitOf(row.topic, standings, rule).beforeMs;
}

/** A published row, without what it holds. */
export interface OldRow {
  readonly _id: string;
  readonly topic: string;
  readonly publishedAt: Date;
  readonly bytes: number;
}

export interface Batch<Row extends OldRow> {
  readonly rows: readonly Row[];
  readonly bytes: number;
}

export interface BatchLimits {
  readonly rowsMax: number;
  readonly bytesMax: number;
  readonly bucketOf: (publishedAt: Date) => string;
}

/** Whether a row has to begin a new batch: every batch goes to one bucket, and has at least one row. */
export function beginsBatch<Row extends OldRow>({ bytes, rows }: Batch<Row>, row: Row, limits: BatchLimits): boolean {
  const [first] = rows;
  if (first === undefined) return false;
  if (rows.length >= limits.rowsMax || bytes + row.bytes > limits.bytesMax) return true;
  return limits.bucketOf(first.publishedAt) !== limits.bucketOf(row.publishedAt);
}

/** Why rows that are old enough stay. */
export interface Held {
  readonly topic: string;
  readonly because:
    | { readonly kind: 'watermark'; readonly group: string; readonly watermarkMs: number }
    | { readonly kind: 'no-group' };
  /** When the oldest of them was published. */
  readonly oldestMs: number;
}

/** One entry for each topic among `rows`, which are old enough and in the order of their publication. */
export function heldAmong(
  rows: readonly Pick<OldRow, 'topic' | 'publishedAt'>[],
  standings: readonly Standing[],
  rule: Rule,
): readonly Held[] {
  const held = new Map<string, Held>();
  for (const { publishedAt, topic } of rows) {
    if (held.has(topic)) continue;
    const limit = limitOf(topic, standings, rule);
    if (limit.kind === 'age' || publishedAt.getTime() < limit.beforeMs) continue;
    const because =
      limit.kind === 'no-group'
        ? { kind: limit.kind }
        : { kind: limit.kind, group: limit.group, watermarkMs: limit.watermarkMs };
    held.set(topic, { topic, because, oldestMs: publishedAt.getTime() });
  }
  return [...held.values()];
}
