import { createHttpApp, type HttpAppOptions } from '@nightporter/http';
import type { BrokerProbe } from '@nightporter/ledger';
import type { ArchiveFiles } from '@nightporter/protocol';
import type { FastifyInstance } from 'fastify';
import type { Producer, Producers } from '../producers.js';
import { deadLetterRoutes, outboxRoutes } from '../ops/action-routes.js';
import { bulkRoutes } from '../ops/bulk-routes.js';
import { doctorRoute } from '../ops/doctor-route.js';
import { groupActionRoutes } from '../ops/group-action-routes.js';
import { liveRoute } from '../ops/live-route.js';
import type { Operations } from '../ops/operations.js';
import { questionRoutes } from '../ops/question-routes.js';
import { retentionRoute } from '../ops/retention-route.js';
import { tailRoute } from '../ops/tail-route.js';
import type { Tokens } from '../tokens.js';
import { groupRoutes } from './group-routes.js';
import { guard, securityOf, securitySchemesOf } from './guard.js';
import { ledgerRoutes } from './ledger-routes.js';
import { errorProblem, producerUnknown } from './problems.js';

export interface ConsoleOptions extends Omit<HttpAppOptions, 'service' | 'title' | 'description' | 'errorProblem'> {
  readonly producers: Producers;
  readonly operations: Operations;
  /** How often those who look at `/v1/live` or `/v1/tail` are told. */
  readonly liveEveryMs: number;
  readonly tokens: Tokens;
  /** Where retention by hand puts files; null: nowhere. */
  readonly archive?: ArchiveFiles | null;
  /** What the doctor asks; null: it looks at the databases alone. */
  readonly broker?: BrokerProbe | null;
  /** How long the broker keeps messages. Default 72 h, as for a worker that is told nothing. */
  readonly brokerRetentionMs?: number;
}

const BROKER_RETENTION_MS = 72 * 3_600_000;

const DESCRIPTION =
  'Where every event is, and what mends it; and producers’ ledgers for groups that may not read their databases. Every error is application/problem+json (RFC 9457).';

/** The HTTP application without a listening socket. */
export async function buildConsole({
  producers,
  operations,
  liveEveryMs,
  tokens,
  archive = null,
  broker = null,
  brokerRetentionMs = BROKER_RETENTION_MS,
  ...options
}: ConsoleOptions): Promise<FastifyInstance> {
  const app = await createHttpApp({
    ...options,
    service: 'console',
    title: 'nightporter ops',
    description: DESCRIPTION,
    errorProblem,
    ...securitySchemesOf(tokens),
  });
  const producerOf = (name: string): Producer => {
    const producer = producers.get(name);
    if (producer === undefined) throw producerUnknown(name, producers.keys());
    return producer;
  };
  await app.register(
    async (scope) => {
      scope.addHook('onRequest', guard('ledger', tokens));
      scope.addHook('onRoute', securityOf('ledger', tokens));
      await scope.register(ledgerRoutes, { producerOf });
      await scope.register(groupRoutes, { producerOf });
    },
    { prefix: '/v1/producers/:producer' },
  );
  await app.register(
    async (scope) => {
      scope.addHook('onRequest', guard('ops', tokens));
      scope.addHook('onRoute', securityOf('ops', tokens));
      for (const routes of [questionRoutes, outboxRoutes, deadLetterRoutes, bulkRoutes, groupActionRoutes])
        await scope.register(routes, { operations });
      await scope.register(doctorRoute, { operations, broker, brokerRetentionMs });
      await scope.register(retentionRoute, { operations, archive });
      await scope.register(liveRoute, { operations, everyMs: liveEveryMs });
      await scope.register(tailRoute, { operations, everyMs: liveEveryMs });
    },
    { prefix: '/v1' },
  );
  return app;
}
