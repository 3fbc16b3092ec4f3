import { createLogger } from '@nightporter/runtime';
import { MongoClient } from 'mongodb';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it, onTestFinished } from 'vitest';
import { createOperations } from '../ops/operations.js';
import { buildConsole } from './app.js';

interface Answered {
  /** What answers it; options may be of any of them. */
  readonly routes: readonly string[];
  /** Options that a route calls otherwise. */
  readonly names?: Readonly<Record<string, string>>;
  /** Options that no route takes, and why not. */
  readonly without?: Readonly<Record<string, string>>;
}

const DEAD = '/v1/groups/{group}/dead-letters';
const FILTER = {
  type: 'filter.eventType',
  code: 'filter.code',
  failure: 'filter.reason',
  aggregate: 'filter.aggregate',
};

/** Every command with what answers it over HTTP. */
const ANSWERED: Readonly<Record<string, Answered>> = {
  status: { routes: ['GET /v1/status', 'GET /v1/live'] },
  timeline: { routes: ['GET /v1/events/{eventId}'], without: { payload: 'it is always told' } },
  aggregate: { routes: ['GET /v1/history'], names: { after: 'afterVersion' } },
  search: {
    routes: ['GET /v1/events'],
    names: { type: 'eventType', tenant: 'tenantId', correlation: 'correlationId', causation: 'causationId' },
  },
  audit: { routes: ['GET /v1/audit'], names: { groups: 'group' } },
  slo: { routes: ['GET /v1/slo'] },
  doctor: {
    routes: ['GET /v1/doctor'],
    without: {
      'rocketmq-endpoints': 'ROCKETMQ_ENDPOINTS',
      'rocketmq-access-key': 'ROCKETMQ_ACCESS_KEY',
      'rocketmq-secret-key': 'ROCKETMQ_SECRET_KEY',
      'rocketmq-tls': 'ROCKETMQ_TLS',
      'rocketmq-always-use-endpoints': 'ROCKETMQ_ALWAYS_USE_ENDPOINTS',
      'broker-retention-hours': 'BROKER_RETENTION_HOURS',
    },
  },
  tail: {
    routes: ['GET /v1/tail'],
    names: { type: 'eventType' },
    without: { 'every-ms': 'LIVE_EVERY_MS, for all who look', limit: 'whoever reads ends it' },
  },
  'outbox list': { routes: ['GET /v1/outbox'] },
  'outbox retry': { routes: ['POST /v1/outbox/{eventId}/retry'] },
  'outbox skip': { routes: ['POST /v1/outbox/{eventId}/skip'] },
  'dead list': { routes: [`GET ${DEAD}`], names: { type: 'eventType', failure: 'reason' } },
  'dead show': { routes: [`GET ${DEAD}/{eventId}`] },
  'dead retry': { routes: [`POST ${DEAD}/{eventId}/retry`, `POST ${DEAD}/retry`], names: FILTER },
  'dead edit': { routes: [`POST ${DEAD}/{eventId}/edit`] },
  'dead skip': { routes: [`POST ${DEAD}/{eventId}/skip`, `POST ${DEAD}/skip`], names: FILTER },
  'dead set-aside': { routes: ['GET /v1/groups/{group}/set-aside'] },
  'dead dismiss': { routes: ['POST /v1/groups/{group}/set-aside/{id}/dismiss'] },
  replay: {
    routes: ['POST /v1/groups/{group}/replays', 'POST /v1/groups/{group}/replays/plan'],
    names: { types: 'eventTypes', from: 'publishedFrom', to: 'publishedBefore', rate: 'ratePerSecond' },
    without: { 'dry-run': 'a route of its own, …/plan' },
  },
  'groups list': { routes: ['GET /v1/groups'] },
  'groups remove': { routes: ['POST /v1/groups/{group}/remove'], names: { 'data-in': 'withData' } },
  'relay show': { routes: ['GET /v1/relay'] },
  'relay pause': { routes: ['POST /v1/relay/pause'] },
  'relay resume': { routes: ['POST /v1/relay/resume'] },
  archive: { routes: ['POST /v1/outboxes/{producer}/retention'] },
  log: { routes: ['GET /v1/actions'] },
};

/** Commands that nothing answers over HTTP, and why not. */
const EXCEPTIONS: Readonly<Record<string, string>> = {
  completions: 'is for a shell',
  reconcile: 'reads the own collections of the services of the shop, of which the console knows none',
  'notifications dead': 'reads the own collections of notification-worker, of which the console knows nothing',
  'notifications retry': 'as `notifications dead`',
};

/** Where the databases are is a setting of the console; `--yes` is `confirm` of a body. */
const COMMON = ['mongodb-uri', 'producers', 'relay-db', 'group-db', 'archive-folder', 'json', 'help', 'yes'];

interface Command {
  readonly name: string;
  readonly options: readonly string[];
}

/** From the page that a test of the command line holds against the program. Commands that only lead to others are left out. */
function commandsOfPage(): readonly Command[] {
  const page = readFileSync(fileURLToPath(new URL('../../../../docs/cli.md', import.meta.url)), 'utf8');
  return page.split(/^## nightporter ?/m).flatMap((part, index) => {
    const name = part.split('\n', 1)[0] ?? '';
    if (index === 0 || name === '' || /^Commands:$/m.test(part)) return [];
    const options = [...part.matchAll(/^ {2}(?:-\w, )?--([a-z-]+)/gm)].map(([, option = '']) => option);
    return [{ name, options: options.filter((option) => !COMMON.includes(option)) }];
  });
}

interface Operation {
  readonly parameters?: readonly { readonly name: string }[];
  readonly requestBody?: { readonly content: Readonly<Record<string, { readonly schema: Schema }>> };
}

interface Schema {
  readonly properties?: Readonly<Record<string, Schema>>;
}

/** What each route of the OpenAPI page takes, by its name; what is in an object of a body as `object.part`. */
async function takenByRoute(): Promise<ReadonlyMap<string, readonly string[]>> {
  const app = await buildConsole({
    producers: new Map(),
    operations: createOperations(new MongoClient('mongodb://127.0.0.1'), { producers: [], relayDatabase: null }),
    liveEveryMs: 1_000,
    tokens: { ops: null, ledger: null },
    logger: createLogger({ name: 'test', level: 'silent' }),
    checks: {},
    bodyBytesMax: 65_536,
    requestsPerMinuteMax: 1_000,
  });
  onTestFinished(() => app.close());
  await app.ready();
  const { paths } = (app as unknown as { swagger(): object }).swagger() as {
    readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  };
  return new Map(
    Object.entries(paths).flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, { parameters = [], requestBody }]) => {
        const bodies = Object.values(requestBody?.content ?? {});
        const taken = [...parameters.map(({ name }) => name), ...bodies.flatMap(({ schema }) => partsOf(schema))];
        return [`${method.toUpperCase()} ${path}`, taken] as const;
      }),
    ),
  );
}

function partsOf({ properties = {} }: Schema): readonly string[] {
  return Object.entries(properties).flatMap(([name, part]) => [name, ...partsOf(part).map((one) => `${name}.${one}`)]);
}

const camelCase = (option: string): string =>
  option.replaceAll(/-([a-z])/g, (_all, letter: string) => letter.toUpperCase());

describe('what a terminal can do', () => {
  const commands = commandsOfPage();

  it('can be done over HTTP, or it is said why not', () => {
    expect(commands.length).toBeGreaterThan(25);
    expect([...Object.keys(ANSWERED), ...Object.keys(EXCEPTIONS)].sort()).toEqual(
      commands.map(({ name }) => name).sort(),
    );
  });

  it('can be done over HTTP by routes that there are, with the same options, or it is said why not', async () => {
    const routes = await takenByRoute();
    const wrong: string[] = [];
    for (const { name, options } of commands) {
      const { names = {}, routes: answering, without = {} } = ANSWERED[name] ?? { routes: [] };
      wrong.push(...answering.filter((route) => !routes.has(route)).map((route) => `${name}: there is no ${route}`));
      const unknown = [...Object.keys(names), ...Object.keys(without)].filter((option) => !options.includes(option));
      wrong.push(...unknown.map((option) => `${name} has no --${option}`));
      if (name in EXCEPTIONS) continue;
      const taken = answering.flatMap((route) => routes.get(route) ?? []);
      const missing = options.filter(
        (option) => !(option in without) && !taken.includes(names[option] ?? camelCase(option)),
      );
      wrong.push(...missing.map((option) => `${name}: no route takes --${option}`));
    }
    expect(wrong).toEqual([]);
  });
});
