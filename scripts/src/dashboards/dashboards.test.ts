import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { DASHBOARDS, grafanaJson } from './index.js';
import { knownMetrics, metricsIn } from '../promql.js';

describe('the dashboards', () => {
  it.each(DASHBOARDS)('of $id stand in docker/grafana as the table says', async (dashboard) => {
    const file = new URL(`../../../docker/grafana/dashboards/${dashboard.id}.json`, import.meta.url);
    await expect(grafanaJson(dashboard)).toMatchFileSnapshot(fileURLToPath(file));
  });

  it.each(DASHBOARDS)('of $id ask for no metric that does not exist', ({ panels }) => {
    const known = knownMetrics();
    const asked = panels.flatMap(({ queries }) => queries.flatMap(({ expression }) => metricsIn(expression)));
    expect(asked.length).toBeGreaterThanOrEqual(panels.length);
    expect(asked.filter((metric) => !known.has(metric))).toEqual([]);
  });

  it.each(DASHBOARDS)('of $id lay no panel over another', ({ ...dashboard }) => {
    const { panels } = JSON.parse(grafanaJson(dashboard)) as {
      panels: readonly { gridPos: { x: number; y: number; w: number; h: number } }[];
    };
    const cells = panels.flatMap(({ gridPos: { x, y, w, h } }) => {
      expect(x + w).toBeLessThanOrEqual(24);
      return Array.from({ length: w * h }, (_, cell) => `${x + (cell % w)},${y + Math.floor(cell / w)}`);
    });
    expect(new Set(cells).size).toBe(cells.length);
  });
});

describe('the metrics of an expression', () => {
  it.each([
    ['sum by (le, group) (rate(a_bucket{state="x{y}"}[5m])) / b', ['a_bucket', 'b']],
    ['histogram_quantile(0.99, sum(rate(a_bucket[5m]))) > 0.5 * scalar(max(c))', ['a_bucket', 'c']],
    ['nightporter:x:ratio_rate1h > 14.4 * 0.005 and up{job="a"} == 0', ['nightporter:x:ratio_rate1h', 'up']],
    ['count(a == 0) or vector(0) unless on (group) d', ['a', 'd']],
  ])('are found in %s', (expression, metrics) => {
    expect(metricsIn(expression)).toEqual(metrics);
  });
});
