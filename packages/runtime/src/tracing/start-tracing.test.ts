import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { loadConfig } from '../config.js';
import { createLogger } from '../logger.js';
import { tracingSettings } from './settings.js';
import { spansUrlOf, startTracing } from './start-tracing.js';

const configOf = (env: Record<string, string>) => loadConfig(tracingSettings(), env);
const logger = createLogger({ name: 'test', level: 'silent', destination: { write: () => undefined } });

describe('tracing', () => {
  it('is off unless somebody says where spans go', async () => {
    expect(await startTracing(configOf({}), { service: 'sample', logger })).toBeNull();
    expect(spansUrlOf(configOf({ OTEL_TRACES_SAMPLER: 'always_on' }))).toBeNull();
  });

  it.each([
    [{ OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector:4318' }, 'http://collector:4318/v1/traces'],
    [{ OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector:4318/otlp/' }, 'http://collector:4318/otlp/v1/traces'],
    [{ OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'http://traces:4318/here' }, 'http://traces:4318/here'],
    [{ OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector:4318', OTEL_SDK_DISABLED: 'true' }, null],
  ])('with %o sends spans to %s', (env, url) => {
    expect(spansUrlOf(configOf(env))).toBe(url);
  });

  it('reads headers and resource attributes as OpenTelemetry writes them', () => {
    const config = configOf({
      OTEL_EXPORTER_OTLP_HEADERS: 'authorization=Bearer%20a%2Cb, x-tenant = acme',
      OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment.name=test',
    });
    expect(config.otlpHeaders).toEqual({ authorization: 'Bearer a,b', 'x-tenant': 'acme' });
    expect(config.resourceAttributes).toEqual({ 'deployment.environment.name': 'test' });
  });

  it.each([
    ['OTEL_EXPORTER_OTLP_ENDPOINT', 'collector:4318'],
    ['OTEL_EXPORTER_OTLP_HEADERS', 'authorization'],
    ['OTEL_EXPORTER_OTLP_HEADERS', 'a=%zz'],
    ['OTEL_TRACES_SAMPLER', 'sometimes'],
    ['OTEL_TRACES_SAMPLER_ARG', '1.5'],
    ['OTEL_TRACES_SAMPLER_ARG', 'half'],
  ])('refuses %s=%s', (name, value) => {
    expect(() => configOf({ [name]: value })).toThrow(name);
  });

  it('costs nothing where it is off: the SDK is imported in one file alone, and that file only when it is on', () => {
    const root = fileURLToPath(new URL('../../../..', import.meta.url));
    const folders = ['packages', 'services'].flatMap((folder) =>
      readdirSync(join(root, folder)).map((name) => join(folder, name, 'src')),
    );
    const sources = folders.flatMap((folder) =>
      readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
        .filter((file) => file.endsWith('.ts') && !file.endsWith('.test.ts'))
        .map((file) => join(folder, file)),
    );
    const lines = sources.flatMap((file) =>
      readFileSync(join(root, file), 'utf8')
        .split('\n')
        .map((line) => ({ file, line })),
    );
    const loads = (line: string, what: RegExp) => what.test(line) && !line.startsWith('import type');
    const ofSdk = lines.filter(({ line }) => loads(line, /from '@opentelemetry\//)).map(({ file }) => file);
    expect([...new Set(ofSdk)]).toEqual(['packages/runtime/src/tracing/sdk.ts']);
    const ofFile = lines.filter(({ line }) => loads(line, /(from|import\() ?'\.[./a-z-]*\/sdk\.js'/));
    expect(ofFile.map(({ line }) => line.trim())).toEqual(["const { createSdk } = await import('./sdk.js');"]);
  });
});
