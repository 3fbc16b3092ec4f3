import { createHttpApp, type HttpAppOptions } from '@nightporter/http';
import type { FastifyInstance } from 'fastify';
import type { Producer, Producers } from '../producers.js';
import type { Tokens } from '../tokens.js';
import { groupRoutes } from './group-routes.js';
import { guard } from './guard.js';
import { ledgerRoutes } from './ledger-routes.js';
import { errorProblem, producerUnknown } from './problems.js';

export interface ConsoleOptions extends Omit<HttpAppOptions, 'title' | 'description' | 'errorProblem'> {
  readonly producers: Producers;
  readonly tokens: Tokens;
}

const DESCRIPTION =
  'Producers’ ledgers for groups that may not read their databases. Every error is application/problem+json (RFC 9457).';

/** The HTTP application without a listening socket. */
export async function buildConsole({ producers, tokens, ...options }: ConsoleOptions): Promise<FastifyInstance> {
  const app = await createHttpApp({ ...options, title: 'nightporter ops', description: DESCRIPTION, errorProblem });
  const producerOf = (name: string): Producer => {
    const producer = producers.get(name);
    if (producer === undefined) throw producerUnknown(name, producers.keys());
    return producer;
  };
  await app.register(
    async (scope) => {
      scope.addHook('preHandler', guard('ledger', tokens));
      await scope.register(ledgerRoutes, { producerOf });
      await scope.register(groupRoutes, { producerOf });
    },
    { prefix: '/v1/producers/:producer' },
  );
  return app;
}
