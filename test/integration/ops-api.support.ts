import { buildConsole, createOperations } from '@nightporter/console';
import type { Deployment } from '@nightporter/ledger';
import { createLogger } from '@nightporter/runtime';
import type { EventId } from '@nightporter/protocol';
import { afterEach, beforeEach } from 'vitest';
import { sharedDatabase } from '../conformance/mongo-database.js';
import { publishedApi } from '../support/openapi.js';
import { operationsFixture, rowsOf, type OperationsFixture } from './operations.support.js';

export const shared = sharedDatabase();
export const TOKEN = 'a-token-for-operators';
export const LEDGER_TOKEN = 'a-token-for-ledgers-alone';
export const ADA = { by: 'ada', reason: 'looked into it' };

/** Fresh for each test of the file that imports it, as is `app`. */
export let fixture: OperationsFixture;
export let app: Awaited<ReturnType<typeof buildConsole>>;

beforeEach(async () => {
  fixture = await operationsFixture(shared);
  app = await consoleOf();
});
afterEach(() => app.close());

export function consoleOf(
  known: Partial<Pick<Deployment, 'groups' | 'producers'>> = {},
  broker: Parameters<typeof buildConsole>[0]['broker'] = null,
): ReturnType<typeof buildConsole> {
  return buildConsole({
    broker,
    producers: new Map(),
    operations: createOperations(fixture.client, {
      producers: fixture.deployment.producers,
      relayDatabase: fixture.relayDatabase,
      ...known,
    }),
    liveEveryMs: 250,
    tokens: { ops: TOKEN, ledger: LEDGER_TOKEN },
    logger: createLogger({ name: 'console', level: 'silent' }),
    checks: {},
    bodyBytesMax: 65_536,
    requestsPerMinuteMax: 100_000,
  });
}

interface Answer {
  readonly status: number;
  readonly body: Record<string, unknown>;
}

export async function ask(method: 'GET' | 'POST', url: string, payload?: object, token = TOKEN): Promise<Answer> {
  const headers = { authorization: `Bearer ${token}` };
  const response = await app.inject({
    method,
    url: `/v1${url}`,
    headers,
    ...(payload === undefined ? {} : { payload }),
  });
  const answer = { status: response.statusCode, body: response.json<Record<string, unknown>>() };
  const { 'content-type': contentType = null } = response.headers;
  publishedApi(app).check({ method, url: `/v1${url}` }, { ...answer, contentType: contentType?.toString() ?? null });
  return answer;
}

export const get = (url: string) => ask('GET', url);
export const post = (url: string, payload: object) => ask('POST', url, payload);
export const statusOf = async (id: EventId) => (await rowsOf(fixture).findOne({ _id: id }))?.status;
