/** What a dashboard is made of. */

type Unit = 'short' | 's' | 'ops' | 'percentunit' | 'reqps' | 'bytes' | 'bool_yes_no';

interface Query {
  readonly expression: string;
  /** As Grafana writes it: `{{label}}`. */
  readonly legend: string;
}

export interface Panel {
  readonly title: string;
  /** What to make of it, for whoever looks at night. */
  readonly description: string;
  readonly kind: 'timeseries' | 'stat';
  readonly unit: Unit;
  readonly queries: readonly Query[];
}

export interface Dashboard {
  /** Name of its file, and part of its address. */
  readonly id: string;
  readonly title: string;
  readonly panels: readonly Panel[];
}

export function graph(title: string, unit: Unit, description: string, ...queries: readonly Query[]): Panel {
  return { title, unit, description, kind: 'timeseries', queries };
}

export function figure(title: string, unit: Unit, description: string, expression: string): Panel {
  return { title, unit, description, kind: 'stat', queries: [{ expression, legend: '' }] };
}

export function query(expression: string, legend = ''): Query {
  return { expression, legend };
}

/** The n-th quantile of a histogram's last five minutes. */
export function quantile(share: number, histogram: string, by: string): string {
  return `histogram_quantile(${share}, sum by (le, ${by}) (rate(${histogram}_bucket[5m])))`;
}
