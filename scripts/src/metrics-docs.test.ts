import { HTTP_METRICS } from '@nightporter/http';
import { DELIVERY_METRICS } from '@nightporter/notification-worker';
import { RELAY_METRICS } from '@nightporter/relay-service';
import { METRIC_LABELS, PROCESS_METRICS, metricsSection, type MetricTable } from '@nightporter/runtime';
import { LANDER_METRICS } from '@nightporter/warehouse-worker';
import { CONSUMER_METRICS } from '@nightporter/worker';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';

const INTRODUCTION = `# Metrics

Every process answers \`GET /metrics\` on the port of \`/livez\` and \`/readyz\`, in Prometheus's text format; a service with an API on the port of that, so keep
the path from the public. Everything carries the label \`service\`. Beside what stands here, Node measures itself: \`process_…\` (memory, processor time, start time, file descriptors) and
\`nodejs_…\` (event loop, garbage collection).

A figure that cannot be read is absent, never 0 and never the last one known. Counters begin at 0 with the process. What a scrape asks of the database is bounded, and asked
at most every 5 s. How many messages wait at the broker is told by the broker's own exporter (\`rocketmq_consumer_lag_messages\`, by \`consumer_group\` and \`topic\`);
\`docker/prometheus\` scrapes it, and records \`nightporter:broker_lag_messages\` by \`group\` and \`topic\` from it.

Written by \`npx vitest run --project unit scripts/src/metrics-docs.test.ts -u\` from the tables that the processes register.
`;

const SECTIONS: readonly (readonly [string, string, MetricTable])[] = [
  ['Every process', 'Of the process itself.', PROCESS_METRICS],
  ['Outbox and relay', 'Of `services/relay`.', RELAY_METRICS],
  ['Consumer groups', 'Of every worker; each is one process of one group.', CONSUMER_METRICS],
  ['Notifications', 'Of `services/notification-worker`, beside what every worker tells.', DELIVERY_METRICS],
  ['Warehouse', 'Of `services/warehouse-worker`, beside what every worker tells.', LANDER_METRICS],
  ['HTTP', 'Of every service with an API.', HTTP_METRICS],
];

function labelsSection(): string {
  const rows = Object.entries(METRIC_LABELS).map(([label, bound]) => `| \`${label}\` | ${bound} |`);
  const text =
    'There are no others, and none that tells single events, aggregates or users apart: for these there are the log and the ledger.';
  return ['## Labels', '', text, '', '| label | values |', '| --- | --- |', ...rows, ''].join('\n');
}

describe('docs/metrics.md', () => {
  it('says what the processes tell', async () => {
    const text = [
      INTRODUCTION,
      '<!-- prettier-ignore-start -->',
      '',
      ...SECTIONS.map((section) => metricsSection(...section)),
      labelsSection(),
      '<!-- prettier-ignore-end -->',
      '',
    ].join('\n');
    await expect(text).toMatchFileSnapshot(fileURLToPath(new URL('../../docs/metrics.md', import.meta.url)));
  });
});

describe('the tables of metrics', () => {
  const definitions = SECTIONS.flatMap(([, , table]) => Object.values(table));

  it('name each metric once, by Prometheus’s conventions', () => {
    const names = definitions.map(({ name }) => name);
    expect(new Set(names).size).toBe(names.length);
    for (const { kind, name, help, buckets } of definitions) {
      expect(name).toMatch(/^(nightporter|http_server)_[a-z][a-z_]*[a-z]$/);
      expect(name.endsWith('_total'), name).toBe(kind === 'counter');
      expect(buckets !== undefined, name).toBe(kind === 'histogram');
      if (buckets !== undefined)
        expect(
          [...buckets].sort((a, b) => a - b),
          name,
        ).toEqual(buckets);
      expect(help, name).toMatch(/\.$/);
      expect(name, 'base units').not.toMatch(/_(ms|millis|milliseconds|minutes|kilobytes)(_|$)/);
    }
  });

  it('have no label that is not in the list of those whose values are few', () => {
    const used = new Set(definitions.flatMap(({ labels = [] }) => labels));
    expect([...used].filter((label) => !(label in METRIC_LABELS))).toEqual([]);
  });
});
