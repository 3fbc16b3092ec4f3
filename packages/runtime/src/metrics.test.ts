import { describe, expect, it } from 'vitest';
import { METRIC_LABELS } from './metric-labels.js';
import { createMetrics, metricsSection, type MetricTable } from './metrics.js';

const TABLE = {
  sends: { kind: 'counter', name: 'test_sends_total', help: 'Sends.', labels: ['topic', 'outcome'] },
  lag: { kind: 'gauge', name: 'test_lag_seconds', help: 'Lag.', labels: ['shard'] },
  duration: { kind: 'histogram', name: 'test_duration_seconds', help: 'Duration.', buckets: [0.1, 1] },
} as const satisfies MetricTable;

function testMetrics(checks: Parameters<typeof createMetrics>[1]['checks'] = {}) {
  return createMetrics(TABLE, { service: 'test', checks });
}

/** The sample lines of one metric, without the label that everything has. */
async function samples(metrics: ReturnType<typeof testMetrics>, name: string): Promise<readonly string[]> {
  const { text } = await metrics.read();
  return text
    .split('\n')
    .filter((line) => line.startsWith(name))
    .map((line) => line.replace(/,?service="test"/, '').replace('{}', ''));
}

describe('metrics', () => {
  it('counts, and raises a counter to what another has counted', async () => {
    const metrics = testMetrics();
    const labels = { topic: 'orders', outcome: 'published' };
    metrics.count('sends', labels);
    metrics.countTo('sends', { ...labels, outcome: 'topic' }, 3);
    metrics.countTo('sends', { ...labels, outcome: 'topic' }, 5);
    metrics.countTo('sends', { ...labels, outcome: 'topic' }, 5);
    expect(await samples(metrics, 'test_sends_total')).toEqual([
      'test_sends_total{topic="orders",outcome="published"} 1',
      'test_sends_total{topic="orders",outcome="topic"} 5',
    ]);
  });

  it('shows a counter that never counted, once it is named', async () => {
    const metrics = testMetrics();
    metrics.count('sends', { topic: 'orders', outcome: 'dead' }, 0);
    expect(await samples(metrics, 'test_sends_total')).toEqual(['test_sends_total{topic="orders",outcome="dead"} 0']);
  });

  it('tells the figures of a table that was added with its own', async () => {
    const metrics = testMetrics();
    const beside = { depth: { kind: 'gauge', name: 'test_depth', help: 'Depth.' } } as const satisfies MetricTable;
    const added = metrics.extend(beside);
    added.beforeScrape(() => {
      added.set('depth', {}, 7);
    });
    metrics.set('lag', { shard: '1' }, 2);
    expect(await samples(metrics, 'test_depth')).toEqual(['test_depth 7']);
    expect(await samples(metrics, 'test_lag_seconds')).toEqual(['test_lag_seconds{shard="1"} 2']);
  });

  it('takes a figure away that is not known any more', async () => {
    const metrics = testMetrics();
    metrics.set('lag', { shard: 'all' }, 2);
    expect(await samples(metrics, 'test_lag_seconds')).toEqual(['test_lag_seconds{shard="all"} 2']);
    metrics.set('lag', { shard: 'all' }, null);
    expect(await samples(metrics, 'test_lag_seconds')).toEqual([]);
  });

  it('sorts what it observes into the buckets of the table', async () => {
    const metrics = testMetrics();
    metrics.observe('duration', {}, 0.5);
    expect(await samples(metrics, 'test_duration_seconds_bucket')).toEqual([
      'test_duration_seconds_bucket{le="0.1"} 0',
      'test_duration_seconds_bucket{le="1"} 1',
      'test_duration_seconds_bucket{le="+Inf"} 1',
    ]);
  });

  it('says whether the process is ready, at the moment of the scrape', async () => {
    let reason: string | null = 'no database';
    const metrics = testMetrics({ database: () => reason });
    expect(await samples(metrics, 'nightporter_ready')).toEqual(['nightporter_ready 0']);
    reason = null;
    expect(await samples(metrics, 'nightporter_ready')).toEqual(['nightporter_ready 1']);
  });

  it('answers without the figures that cannot be read, and counts that', async () => {
    const metrics = testMetrics();
    metrics.beforeScrape(() => Promise.reject(new Error('database away')));
    metrics.beforeScrape(() => {
      metrics.set('lag', { shard: 'all' }, 1);
    });
    expect(await samples(metrics, 'test_lag_seconds')).toEqual(['test_lag_seconds{shard="all"} 1']);
    expect(await samples(metrics, 'nightporter_scrape_failures_total')).toEqual([
      'nightporter_scrape_failures_total 2',
    ]);
  });

  it('has what Node measures of itself, with the name of the service', async () => {
    const { text, contentType } = await testMetrics().read();
    expect(text).toMatch(/^process_resident_memory_bytes\{service="test"\} \d+$/m);
    expect(contentType).toContain('version=0.0.4');
  });

  it('has no label that tells single things apart', () => {
    const forbidden = Object.keys(METRIC_LABELS).filter((label) =>
      /(^|_)(id|key|aggregate|message|owner)$/.test(label),
    );
    expect(forbidden).toEqual([]);
  });

  it('describes a table in the form of the documentation', () => {
    expect(metricsSection('Test', 'Of a test.', TABLE)).toContain(
      '| `test_duration_seconds` | histogram |  | Duration. Buckets: 0.1, 1. |',
    );
  });
});
