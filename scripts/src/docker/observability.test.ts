import { readFileSync, readdirSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { DOCKER_FOLDER, readCompose, variablesOfCompose } from './compose.js';
import { SERVICES } from './services.js';

const secrets = Object.fromEntries([...variablesOfCompose()].map((name) => [name, 'x'.repeat(16)]));
const { services } = readCompose({ ...secrets, LOG_LEVEL: 'info' });
const read = (file: string): string => readFileSync(`${DOCKER_FOLDER}${file}`, 'utf8');
const mountOf = (service: string): readonly string[] => services[service]?.volumes ?? [];

interface ScrapeConfig {
  readonly job_name: string;
  readonly static_configs: readonly { readonly targets: readonly string[] }[];
}

describe('Prometheus', () => {
  const { scrape_configs, rule_files } = parse(read('prometheus/prometheus.yml')) as {
    scrape_configs: readonly ScrapeConfig[];
    rule_files: readonly string[];
  };
  const targetsOf = (job: string) =>
    scrape_configs
      .filter(({ job_name }) => job_name === job)
      .flatMap(({ static_configs }) => static_configs.flatMap(({ targets }) => targets));

  it('scrapes every service at its port, and nothing else', () => {
    const expected = SERVICES.map(({ name }) => `${name}:${services[name]?.environment?.['PORT'] ?? ''}`);
    expect(targetsOf('nightporter').toSorted()).toEqual(expected.toSorted());
  });

  it('scrapes the broker where its exporter listens', () => {
    const [, port] = /^metricsPromExporterPort=(\d+)$/m.exec(read('rocketmq/broker.conf')) ?? [];
    expect(targetsOf('rocketmq')).toEqual([`broker:${port ?? ''}`]);
    expect(services['broker']).toBeDefined();
  });

  it('finds its configuration and our rules where they are mounted', () => {
    expect(mountOf('prometheus')).toContain('./prometheus/prometheus.yml:/etc/prometheus/prometheus.yml:ro');
    expect(mountOf('prometheus')).toContain('./prometheus/rules:/etc/prometheus/rules:ro');
    expect(rule_files).toEqual(['/etc/prometheus/rules/*.yaml']);
  });
});

describe('Grafana', () => {
  const sources = readdirSync(`${DOCKER_FOLDER}grafana/provisioning/datasources`).flatMap(
    (file) =>
      (
        parse(read(`grafana/provisioning/datasources/${file}`)) as {
          datasources: readonly { uid: string; url: string }[];
        }
      ).datasources,
  );

  it('has every data source that a dashboard names', () => {
    const uids = sources.map(({ uid }) => uid);
    const files = readdirSync(`${DOCKER_FOLDER}grafana/dashboards`);
    expect(files.length).toBeGreaterThan(0);
    for (const file of files) {
      const asked = [
        ...read(`grafana/dashboards/${file}`).matchAll(/"datasource": \{\s*"type": "\w+",\s*"uid": "(\w+)"/g),
      ].map(([, uid]) => uid);
      expect(asked.length, file).toBeGreaterThan(0);
      expect(
        asked.filter((uid) => !uids.includes(String(uid))),
        file,
      ).toEqual([]);
    }
  });

  it('reads from services that are there', () => {
    for (const { url } of sources) expect(Object.keys(services)).toContain(new URL(url).hostname);
  });

  it('finds dashboards and sources where they are mounted', () => {
    const { providers } = parse(read('grafana/provisioning/dashboards/nightporter.yaml')) as {
      providers: readonly { options: { path: string } }[];
    };
    for (const { options } of providers)
      expect(mountOf('grafana')).toContain(`./grafana/dashboards:${options.path}:ro`);
    expect(mountOf('grafana')).toContain('./grafana/provisioning:/etc/grafana/provisioning:ro');
  });
});

interface CollectorConfig {
  readonly receivers: {
    readonly otlp: { readonly protocols: Readonly<Record<string, { readonly endpoint: string }>> };
  };
  readonly exporters: Readonly<Record<string, { readonly endpoint: string }>>;
  readonly service: { readonly pipelines: Readonly<Record<string, Readonly<Record<string, readonly string[]>>>> };
}

describe('the OTLP collector', () => {
  const file = parse(read('otel/collector.yaml')) as CollectorConfig &
    Readonly<Record<string, Readonly<Record<string, unknown>>>>;

  it('listens where the services send their traces to, and hands them to a service that is there', () => {
    const ports = Object.values(file.receivers.otlp.protocols).map(({ endpoint }) => endpoint.split(':')[1]);
    for (const { name } of SERVICES) {
      const { hostname, port } = new URL(services[name]?.environment?.['OTEL_EXPORTER_OTLP_ENDPOINT'] ?? '');
      expect(services[hostname]?.command, name).toEqual(['--config=/etc/otel/collector.yaml']);
      expect(ports).toContain(port);
    }
    for (const { endpoint } of Object.values(file.exporters))
      expect(Object.keys(services)).toContain(endpoint.split(':')[0]);
    expect(mountOf('otel-collector')).toContain('./otel/collector.yaml:/etc/otel/collector.yaml:ro');
  });

  it('has a definition for each part of its pipelines', () => {
    for (const parts of Object.values(file.service.pipelines))
      for (const [kind, names] of Object.entries(parts))
        expect(Object.keys(file[kind] ?? {})).toEqual(expect.arrayContaining([...names]));
  });
});
