import { READS, TOPICS, type Group, type Producer } from './shop.js';

/** How far everything had come at one moment. */
export interface LoadSample {
  readonly atMs: number;
  readonly placed: number;
  readonly producers: readonly { readonly name: Producer; readonly committed: number; readonly unpublished: number }[];
  readonly groups: readonly { readonly name: Group; readonly settled: number }[];
}

interface Stage {
  readonly name: string;
  readonly count: number;
  /** Since the sample before. */
  readonly perSecond: number;
  /** Events that this stage has still to do. */
  readonly lag: number | null;
}

/** One row for each stage: what it has done, how fast, and what it has still to do. */
export function loadView(sample: LoadSample, before: LoadSample | null, total: number): readonly string[] {
  const rows = stagesOf(sample, before).map(({ name, count, perSecond, lag }) =>
    [name.padEnd(26), pad(count, 9), pad(perSecond.toFixed(0), 8), lag === null ? '' : pad(lag, 8)].join(' ').trimEnd(),
  );
  const done = total === 0 ? 0 : Math.floor((sample.placed / total) * 100);
  return [
    `${'stage'.padEnd(26)} ${pad('count', 9)} ${pad('per s', 8)} ${pad('lag', 8)}   ${done} % of ${total} orders`,
    ...rows,
  ];
}

/** The same in one line, for logs. */
export function loadLine(sample: LoadSample, before: LoadSample | null, total: number): string {
  const [orders, ...stages] = stagesOf(sample, before);
  const lags = stages.filter(({ lag }) => (lag ?? 0) > 0).map(({ name, lag }) => `${name} ${lag ?? 0}`);
  const rate = (orders?.perSecond ?? 0).toFixed(0);
  return `${sample.placed} of ${total} orders (${rate}/s); behind: ${lags.length === 0 ? 'nothing' : lags.join(', ')}`;
}

function stagesOf(sample: LoadSample, before: LoadSample | null): readonly Stage[] {
  const seconds = before === null ? 0 : (sample.atMs - before.atMs) / 1_000;
  const stage = (name: string, of: (sample: LoadSample) => number, lag: number | null): Stage => {
    const grown = before === null ? 0 : of(sample) - of(before);
    return { name, count: of(sample), perSecond: seconds > 0 ? grown / seconds : 0, lag };
  };
  return [
    stage('orders placed', ({ placed }) => placed, null),
    stage('events committed', ({ producers }) => sum(producers.map(({ committed }) => committed)), null),
    stage('events published', publishedIn, sum(sample.producers.map(({ unpublished }) => unpublished))),
    ...sample.groups.map(({ name, settled }) =>
      stage(
        `settled by ${name}`,
        ({ groups }) => groups.find((group) => group.name === name)?.settled ?? 0,
        Math.max(0, readBy(name, sample) - settled),
      ),
    ),
  ];
}

function publishedIn({ producers }: LoadSample): number {
  return sum(producers.map(({ committed, unpublished }) => Math.max(0, committed - unpublished)));
}

/** Events on the topics that the group reads. */
function readBy(group: Group, { producers }: LoadSample): number {
  const topics: readonly string[] = READS[group];
  return sum(producers.filter(({ name }) => topics.includes(TOPICS[name])).map(({ committed }) => committed));
}

function pad(value: number | string, width: number): string {
  return String(value).padStart(width);
}

function sum(counts: readonly number[]): number {
  return counts.reduce((total, count) => total + count, 0);
}
