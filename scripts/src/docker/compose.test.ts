import { ordersCatalogue } from '@nightporter/contracts';
import { namespace } from '@nightporter/protocol';
import { loadConfig } from '@nightporter/runtime';
import { DCLinter } from 'dclint';
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it, onTestFinished } from 'vitest';
import { stringify } from 'yaml';
import { DOCKER_FOLDER, readCompose, readEnvFile, variablesOfCompose } from './compose.js';
import { brokerNeeds, setUpScript } from './rocketmq-set-up.js';
import { SERVICES } from './services.js';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const secrets = Object.fromEntries([...variablesOfCompose()].map((name) => [name, `${name.toLowerCase()}-0123456789`]));
const compose = readCompose({ ...secrets, LOG_LEVEL: '' });
const names = Object.keys(compose.services);
/** What the image sets for all of them. */
const OF_THE_IMAGE = { HOST: '0.0.0.0' };

/** Its own types lead to files that it does not ship. */
const Linter = DCLinter as unknown as new (config: object) => {
  lintFiles(paths: readonly string[], isRecursive: boolean): readonly { readonly messages: readonly Objection[] }[];
};

interface Objection {
  readonly rule: string;
  readonly type: string;
  readonly message: string;
}

/** How things are sorted and quoted; and that what is built has a name. */
const OURS_TO_DECIDE = /-alphabetical$|-order$|-quotes|^no-build-and-image$/;

/** What a linter, which has the specification's schema, finds wrong. */
function objections(document: object): readonly string[] {
  const folder = mkdtempSync(join(tmpdir(), 'nightporter-compose-'));
  onTestFinished(() => {
    rmSync(folder, { recursive: true });
  });
  const file = join(folder, 'compose.yaml');
  // Without aliases, of which the linter's parser takes a hundred.
  writeFileSync(file, stringify(document, { aliasDuplicateObjects: false }));
  const [result] = new Linter({ rules: {}, quiet: true, debug: false, exclude: [] }).lintFiles([file], false);
  if (result === undefined) throw new Error('the linter found no file');
  return result.messages
    .filter(({ rule, type }) => type === 'error' && !OURS_TO_DECIDE.test(rule))
    .map(({ rule, message }) => `${rule}: ${message}`);
}

describe('docker/compose.yaml', () => {
  it('is valid by the schema of the Compose specification', () => {
    expect(objections(compose)).toEqual([]);
  });

  it('would not be with a name or a value that Compose does not know', () => {
    const relay = compose.services['relay']!;
    const withRelay = (wrong: object) => ({
      ...compose,
      services: { ...compose.services, relay: { ...relay, ...wrong } },
    });
    expect(objections(withRelay({ restarts: 'always' }))).not.toEqual([]);
    expect(objections(withRelay({ depends_on: { broker: { condition: 'service_well' } } }))).not.toEqual([]);
  });

  it('refers to nothing that is not there: services, volumes, secrets, files', () => {
    for (const [name, service] of Object.entries(compose.services)) {
      expect(names, name).toEqual(expect.arrayContaining(Object.keys(service.depends_on ?? {})));
      for (const volume of service.volumes ?? []) {
        const [source = ''] = volume.split(':');
        if (source.startsWith('.')) expect(existsSync(join(DOCKER_FOLDER, source)), volume).toBe(true);
        else expect(Object.keys(compose.volumes), name).toContain(source);
      }
      for (const secret of service.secrets ?? []) expect(Object.keys(compose.secrets)).toContain(secret);
    }
  });

  it('waits with a health check or an end for what it depends on, and jobs do not start again', () => {
    for (const service of Object.values(compose.services)) {
      for (const [other, { condition }] of Object.entries(service.depends_on ?? {})) {
        const { healthcheck, restart } = compose.services[other]!;
        if (condition === 'service_healthy') expect(healthcheck?.test, other).toBeDefined();
        else expect([condition, restart], other).toEqual(['service_completed_successfully', 'no']);
      }
    }
  });

  it('pins every image, and publishes on the loopback interface alone', () => {
    const { version } = JSON.parse(readFileSync(`${ROOT}package.json`, 'utf8')) as { version: string };
    for (const [name, { build, image, ports }] of Object.entries(compose.services)) {
      expect(image, name).toMatch(/:v?\d+\.\d+\.\d+(-noble)?$/);
      if (build !== undefined) expect(image).toBe(`nightporter:${version}`);
      for (const port of ports ?? []) expect(port, name).toMatch(/^127\.0\.0\.1:\d+:\d+$/);
    }
    const published = names.flatMap((name) => compose.services[name]!.ports ?? []).map((port) => port.split(':')[1]);
    expect(new Set(published).size).toBe(published.length);
  });

  it('runs every service of services/, and has the command line', () => {
    const folders = readdirSync(`${ROOT}services`);
    expect(
      SERVICES.map(({ name }) => name)
        .concat('cli')
        .toSorted(),
    ).toEqual(folders.toSorted());
    expect(names).toEqual(expect.arrayContaining(folders));
    expect(compose.services['cli']).toMatchObject({
      profiles: ['cli'],
      entrypoint: ['node', 'services/cli/bin/nightporter.js'],
    });
  });

  it('gives the command line what it takes from its environment: the broker, and the files of the warehouse to read', () => {
    const { cli, relay, 'warehouse-worker': warehouse } = compose.services;
    const page = readFileSync(`${ROOT}docs/cli.md`, 'utf8');
    const known = new Set([...page.matchAll(/\benv:\s+([A-Z_]+)/g)].map(([, name]) => name));
    expect(known).toContain('WAREHOUSE_FOLDER');
    const given = Object.keys(cli!.environment!).filter((name) => name !== 'LOG_LEVEL' && !name.startsWith('OTEL_'));
    expect(given.filter((name) => !known.has(name))).toEqual([]);
    const { MONGODB_URI, ROCKETMQ_ENDPOINTS } = relay!.environment!;
    const { WAREHOUSE_FOLDER } = warehouse!.environment!;
    expect(cli!.environment).toMatchObject({ MONGODB_URI, ROCKETMQ_ENDPOINTS, WAREHOUSE_FOLDER });
    expect(cli!.volumes).toEqual(warehouse!.volumes!.map((volume) => `${volume}:ro`));
  });

  it.each(SERVICES)(
    'gives $name the settings that it knows and all that it needs, and its documented port',
    ({ name, config: table }) => {
      const { environment = {} } = compose.services[name]!;
      const known = new Set(Object.values(table).map((setting) => setting.name));
      const unknown = Object.keys(environment).filter(
        (variable) => !known.has(variable) && !variable.startsWith('OTEL_'),
      );
      expect(unknown).toEqual([]);
      const config = loadConfig(table, { ...OF_THE_IMAGE, ...environment });
      expect(config).toMatchObject({ port: Number(table['port']?.default), host: '0.0.0.0' });
    },
  );

  it.each(SERVICES)('starts $name by its built entry point, without root and in order', ({ name, config: table }) => {
    const service = compose.services[name]!;
    expect(service.command).toEqual([`services/${name}/dist/main.js`]);
    expect(existsSync(`${ROOT}services/${name}/src/main.ts`)).toBe(true);
    expect(service).toMatchObject({ init: true, read_only: true, restart: 'unless-stopped' });
    expect(service.build).toEqual({ context: '..', dockerfile: 'docker/Dockerfile' });
    const { shutdownMs } = loadConfig(table, { ...OF_THE_IMAGE, ...service.environment });
    expect(Number.parseInt(service.stop_grace_period!, 10) * 1_000).toBeGreaterThan(Number(shutdownMs));
  });
});

describe('secrets', () => {
  it('are named in docker/.env.example, which has none, and are all that Compose asks for', () => {
    const example = readEnvFile(`${DOCKER_FOLDER}.env.example`);
    expect(new Set(Object.keys(example))).toEqual(variablesOfCompose());
    const { LOG_LEVEL, ...empty } = example;
    expect(LOG_LEVEL).toBe('info');
    expect(Object.values(empty).every((value) => value === '')).toBe(true);
    expect(readFileSync(`${ROOT}.gitignore`, 'utf8').split('\n')).toContain('.env');
  });

  it('are made at random by docker/make-env.mjs, which overwrites nothing', () => {
    const folder = mkdtempSync(join(tmpdir(), 'nightporter-env-'));
    onTestFinished(() => {
      rmSync(folder, { recursive: true });
    });
    const file = join(folder, '.env');
    const make = () => spawnSync(process.execPath, [`${DOCKER_FOLDER}make-env.mjs`, file], { encoding: 'utf8' });
    expect(make()).toMatchObject({ status: 0, stderr: '' });
    const made = readEnvFile(file);
    const { LOG_LEVEL, ...random } = made;
    expect(LOG_LEVEL).toBe('info');
    expect(new Set(Object.values(random)).size).toBe(Object.keys(random).length);
    for (const value of Object.values(random)) expect(value).toMatch(/^[0-9a-f]{48}$/);
    expect(make()).toMatchObject({ status: 0 });
    expect(readEnvFile(file)).toEqual(made);
    // What the console says of tokens holds for these.
    expect(() => readCompose(made)).not.toThrow();
  });

  it('that are missing keep Compose from starting', () => {
    expect(() => readCompose({ ...secrets, OPS_TOKEN: '' })).toThrow('run node docker/make-env.mjs');
  });
});

describe('topics, groups and databases', () => {
  const needs = brokerNeeds(compose);
  const relay = loadConfig(
    SERVICES.find(({ name }) => name === 'relay')!.config,
    compose.services['relay']!.environment!,
  );

  it('are created as the services ask for them', async () => {
    await expect(setUpScript(needs)).toMatchFileSnapshot(`${DOCKER_FOLDER}rocketmq/set-up.sh`);
  });

  it('are those of the catalogue, and the relay publishes all of them', () => {
    expect(needs.topics).toEqual([...ordersCatalogue.topics].toSorted());
    expect([...(relay['topics'] as string[])].toSorted()).toEqual(needs.topics);
    expect(needs.groups).toHaveLength(SERVICES.filter(({ config }) => 'group' in config).length);
  });

  it('of all producers are relayed, and shown by the console', () => {
    const producers = new Set<string>();
    for (const { name, config: table } of SERVICES) {
      const config: Record<string, unknown> = loadConfig(table, {
        ...OF_THE_IMAGE,
        ...compose.services[name]!.environment,
      });
      for (const [key, value] of Object.entries(config))
        if (key.startsWith('database of ')) producers.add(String(value));
    }
    const relayed = (relay['namespaces'] as string[]).map(namespace);
    expect(relayed.toSorted()).toEqual([...producers].map((database) => `${database}.outbox`).toSorted());
    expect(compose.services['console']!.environment!['PRODUCER_DBS']!.split(',').toSorted()).toEqual(
      [...producers].toSorted(),
    );
  });

  it('are kept by the broker as long as the workers believe', () => {
    const broker = readFileSync(`${DOCKER_FOLDER}rocketmq/broker.conf`, 'utf8');
    for (const { config: table } of SERVICES) {
      const hours = table['brokerRetentionHours']?.default;
      if (hours !== undefined) expect(broker).toContain(`\nfileReservedTime=${hours}\n`);
    }
    expect(broker).toContain('\nautoCreateTopicEnable=false\n');
  });
});
