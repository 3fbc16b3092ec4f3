import type { MetricTable } from '@nightporter/runtime';
import parse, { type MetricFamily } from 'parse-prometheus-text-format';
import type { ServiceName } from './programs.js';

export interface Sample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

/** What processes answered to their last scrapes. */
export class Scrapes {
  readonly #urls: ReadonlyMap<ServiceName, string>;
  readonly #tables: Readonly<Record<ServiceName, MetricTable>>;
  readonly #ofEveryProcess: MetricTable;
  readonly #texts = new Map<ServiceName, string>();

  constructor(
    urls: ReadonlyMap<ServiceName, string>,
    tables: Readonly<Record<ServiceName, MetricTable>>,
    ofEveryProcess: MetricTable,
  ) {
    this.#urls = urls;
    this.#tables = tables;
    this.#ofEveryProcess = ofEveryProcess;
  }

  /** Throws where one is not answered as Prometheus expects. */
  async read(): Promise<void> {
    await Promise.all(
      [...this.#urls].map(async ([service, url]) => {
        const answer = await fetch(`${url}/metrics`, { signal: AbortSignal.timeout(10_000) });
        const contentType = answer.headers.get('content-type');
        if (answer.status !== 200 || contentType !== 'text/plain; version=0.0.4; charset=utf-8')
          throw new Error(`/metrics of ${service} answered ${answer.status}, ${String(contentType)}`);
        this.#texts.set(service, await answer.text());
      }),
    );
  }

  textOf(service: ServiceName): string {
    return this.#texts.get(service) ?? '';
  }

  familiesOf(service: ServiceName): ReadonlyMap<string, MetricFamily> {
    return new Map(parse(this.textOf(service)).map((family) => [family.name, family]));
  }

  samplesOf(service: ServiceName): readonly Sample[] {
    return samplesIn(this.textOf(service));
  }

  /** The sum over all series with these labels; NaN where there are none. */
  valueOf(service: ServiceName, name: string, labels: Readonly<Record<string, string>>): number {
    const found = this.samplesOf(service).filter(
      (sample) =>
        sample.name === name && Object.entries(labels).every(([label, text]) => sample.labels[label] === text),
    );
    return found.length === 0 ? Number.NaN : found.reduce((sum, { value }) => sum + value, 0);
  }

  /** Metrics with a sample. */
  seen(service: ServiceName): readonly string[] {
    return [...this.familiesOf(service).values()].flatMap(({ metrics, name }) => (metrics.length > 0 ? [name] : []));
  }

  /** Metrics of the service's tables without any sample. */
  unseen(service: ServiceName): readonly string[] {
    const seen = new Set(this.seen(service));
    const declared = [...Object.values(this.#ofEveryProcess), ...Object.values(this.#tables[service])];
    return declared.map(({ name }) => name).filter((name) => !seen.has(name));
  }
}

/** Line by line, since the parser drops the labels of histograms. */
export function samplesIn(text: string): readonly Sample[] {
  const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  return lines.map((line) => {
    const [, name = '', labels = '', value = ''] = /^(\w+)(?:\{(.*)\})? (\S+)/.exec(line) ?? [];
    const pairs = [...labels.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)].map(([, label, written]) => [label, written]);
    return { name, labels: Object.fromEntries(pairs) as Record<string, string>, value: Number(value) };
  });
}
