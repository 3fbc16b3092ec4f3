import type { Reconciliation } from '@nightporter/cli';
import type { OutboxDocument } from '@nightporter/contracts';
import { aggregateKey } from '@nightporter/protocol';
import type { Violation } from '@nightporter/testing';
import type { Evidence } from './evidence.js';
import type { TrafficResult } from './traffic.js';

/** The line of JSON. */
export interface DemoSummary {
  readonly ok: boolean;
  readonly engine: string;
  readonly orders: number;
  readonly events: number;
  readonly published: number;
  /**
   * Published events that are settled in every group registered for their topic. An event whose topic has no group counts, as there
   * is nobody left who could miss it; the report for people says how many those are.
   */
  readonly settled: number;
  /** Deliveries of settled events that the inbox absorbed. */
  readonly duplicates: number;
  readonly lost: number;
  readonly doubled: number;
  readonly misordered: number;
  /** Places where two services of the shop do not say the same of an order. */
  readonly differences: number;
  /** Commit → settled, null where nothing was settled. */
  readonly p50Ms: number | null;
  readonly p99Ms: number | null;
}

export interface Findings {
  readonly engine: string;
  readonly broker: string;
  readonly traffic: TrafficResult;
  readonly evidence: Evidence;
  readonly violations: readonly Violation[];
  /** Orders, payments, stock, points and shipments beside each other. */
  readonly reconciliation: Pick<Reconciliation, 'orders' | 'differences' | 'differencesTotal' | 'refundsDue'>;
  /** False when the wait for rest was given up. */
  readonly cameToRest: boolean;
  readonly kills: readonly string[];
  /** Messages handed out once more on purpose; null when they were not all acknowledged again in time. */
  readonly redelivered: number | null;
  /** Messages in the broker's topics: at least one per published event, more where a send was repeated. */
  readonly messages: number;
  readonly clients: number;
  readonly elapsedMs: number;
}

export function summarize(findings: Findings): DemoSummary {
  const { evidence, violations, traffic } = findings;
  const latencies = latenciesOf(evidence);
  const count = (...kinds: readonly Violation['kind'][]): number =>
    violations.filter(({ kind }) => kinds.includes(kind)).length;
  return {
    ok:
      findings.cameToRest &&
      findings.redelivered !== null &&
      violations.length === 0 &&
      findings.reconciliation.differencesTotal === 0 &&
      traffic.unexpected.length === 0,
    engine: findings.engine,
    orders: traffic.orders.size,
    events: evidence.rows.length,
    published: evidence.rows.filter(({ status }) => status === 'PUBLISHED').length,
    settled: settledRows(evidence).length,
    duplicates: evidence.groups.flatMap(({ inbox }) => inbox).reduce((sum, { duplicates }) => sum + duplicates, 0),
    lost: count('lost', 'stuck'),
    doubled: count('doubled'),
    misordered: count('out of order'),
    differences: findings.reconciliation.differencesTotal,
    p50Ms: percentile(latencies, 0.5),
    p99Ms: percentile(latencies, 0.99),
  };
}

/** Published, and settled in every group registered for its topic. */
function settledRows({ rows, groups }: Evidence): readonly OutboxDocument[] {
  const readers = groups.map(({ topics, inbox }) => ({
    topics,
    ids: new Set<string>(inbox.map(({ eventId }) => eventId)),
  }));
  return rows.filter(
    ({ _id, status, topic }) =>
      status === 'PUBLISHED' && readers.every(({ topics, ids }) => !topics.includes(topic) || ids.has(_id)),
  );
}

/** Events whose topic no group is registered for: settled everywhere, because nowhere. */
function rowsWithoutGroup({ rows, groups }: Evidence): readonly OutboxDocument[] {
  const read = new Set(groups.flatMap(({ topics }) => topics));
  return rows.filter(({ topic }) => !read.has(topic));
}

/** From the row's own date to the date of its settlement. Producer and database share one machine, and so one clock, here. */
function latenciesOf({ rows, groups }: Evidence): readonly number[] {
  const createdAt = new Map(rows.map((row) => [row._id, row.createdAt.getTime()]));
  return groups
    .flatMap(({ inbox }) => inbox)
    .flatMap(({ eventId, processedAt }) => {
      const created = createdAt.get(eventId);
      return created === undefined ? [] : [Math.max(0, processedAt.getTime() - created)];
    })
    .toSorted((a, b) => a - b);
}

function percentile(sorted: readonly number[], part: number): number | null {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? null;
}

const SHOWN_MAX = 20;

/** The report for people. */
export function reportText(findings: Findings): string {
  const summary = summarize(findings);
  const { traffic, violations, kills } = findings;
  const row = (name: string, value: string): string => `  ${name.padEnd(14)}${value}`;
  const redelivered =
    findings.redelivered === null
      ? 'the broker handed messages out once more, and they were NOT all acknowledged in time'
      : `the broker handed ${findings.redelivered} messages out once more`;
  return [
    `nightporter demo: ${summary.ok ? 'everything that was promised is there, once and in order' : 'NOT OK'} (${(findings.elapsedMs / 1000).toFixed(1)} s)`,
    row('engine', `${summary.engine}; ${findings.broker}`),
    row(
      'orders',
      `${summary.orders} by ${findings.clients} clients over HTTP; ${new Set(traffic.acknowledged.map(({ orderId, version }) => `${version} ${orderId}`)).size} commands acknowledged, ${traffic.refused} refused, ${traffic.replayed} repeats answered alike`,
    ),
    row(
      'faults',
      `${kills.length === 0 ? 'nothing was killed' : `killed with SIGKILL: ${kills.join(', ')}`}; ${redelivered}`,
    ),
    row('events', `${summary.events} committed`),
    row('published', `${summary.published}, as ${findings.messages} messages at the broker`),
    row('settled', settledText(findings, summary)),
    row('duplicates', `${summary.duplicates} absorbed`),
    row('lost', String(summary.lost)),
    row('doubled', String(summary.doubled)),
    row('misordered', String(summary.misordered)),
    row('reconciled', reconciledText(findings)),
    row(
      'latency',
      `commit → settled: p50 ${summary.p50Ms ?? '–'} ms, p99 ${summary.p99Ms ?? '–'} ms (outages included)`,
    ),
    ...timeline(findings.evidence),
    ...problems([
      ...violations.map(describe),
      ...findings.reconciliation.differences.map(
        ({ orderId, between, detail }) => `${between}: ${orderId ?? ''} ${detail}`,
      ),
      ...traffic.unexpected.map((answer) => `unexpected answer: ${answer}`),
    ]),
  ].join('\n');
}

function settledText({ evidence, cameToRest }: Findings, { settled }: DemoSummary): string {
  const unread = rowsWithoutGroup(evidence);
  const topics = [...new Set(unread.map(({ topic }) => topic))].join(', ');
  return [
    `${settled} in every group registered for their topic`,
    ...(unread.length === 0
      ? []
      : [`no group is registered for ${topics}, so that nothing had to settle the ${unread.length} events there`]),
    ...(cameToRest ? [] : ['the wait for the rest was given up']),
  ].join('; ');
}

function reconciledText({ reconciliation, evidence }: Findings): string {
  const { orders, differencesTotal, refundsDue } = reconciliation;
  const count = (status: string): number => evidence.orders.filter((order) => order.status === status).length;
  const came = ['COMPLETED', 'CANCELLED', 'CREATED']
    .map((status) => `${count(status)} ${status.toLowerCase()}`)
    .join(', ');
  return `${orders} orders (${came}): ${differencesTotal} differences between services, ${refundsDue.length} refunds due`;
}

function problems(found: readonly string[]): readonly string[] {
  if (found.length === 0) return [];
  const more = found.length > SHOWN_MAX ? [`  … and ${found.length - SHOWN_MAX} more`] : [];
  return ['', `  ${found.length} findings:`, ...found.slice(0, SHOWN_MAX).map((line) => `  - ${line}`), ...more];
}

function describe({ kind, group, eventId, detail }: Violation): string {
  return `${kind}${group === undefined ? '' : ` in group ${group}`}: ${eventId === '' ? '' : `event ${eventId}: `}${detail}`;
}

/** The life of the event that was delivered most often: it shows most of what can happen. */
function timeline({ rows, groups, movements }: Evidence): readonly string[] {
  const records = groups.flatMap(({ group, inbox }) => inbox.map((record) => ({ group, record })));
  const [chosen] = records.toSorted(
    (a, b) => b.record.duplicates - a.record.duplicates || b.record.version - a.record.version,
  );
  const row = rows.find(({ _id }) => _id === chosen?.record.eventId);
  if (chosen === undefined || row === undefined) return [];
  const { record, group } = chosen;
  const start = row.createdAt.getTime();
  const step = (at: Date | null | undefined, text: string): string =>
    `    ${at === null || at === undefined ? '         ' : `+${String(at.getTime() - start).padStart(5)} ms`}  ${text}`;
  const effects = movements
    .filter(({ eventId }) => eventId === row._id)
    .map((movement) =>
      step(
        movement.at,
        `effect: ${movement.kind} ${movement.lines.map(({ productId, quantity }) => `${quantity} × ${productId}`).join(', ')}`,
      ),
    );
  return [
    '',
    `  one event: ${row.eventType} ${row._id}, version ${row.aggregateVersion} of ${aggregateKey(row)}`,
    step(row.createdAt, `written to the outbox with its order, ${row.createdAt.toISOString()}`),
    step(row.publication?.capturedAt, `captured by the relay, epoch ${row.publication?.epoch ?? '–'}`),
    step(row.publishedAt, `marked published: message ${row.publication?.messageId ?? '–'} on ${row.topic}`),
    step(record.receivedAt, `received by group ${group}`),
    ...effects,
    step(record.processedAt, `settled as ${record.outcome} at attempt ${record.attempts}`),
    step(null, `delivered again and absorbed: ${record.duplicates} times`),
  ];
}
