import { ProblemError, type HttpAppOptions } from '@nightporter/http';
import type { FastifyReply, FastifyRequest, onRequestAsyncHookHandler, onRouteHookHandler } from 'fastify';
import { accessOf, isLoopback, type Scope, type Tokens } from '../tokens.js';
import { problem } from './problems.js';

/** Lets nobody in without the token that `scope` needs, and answers before anything of the request is carried out. */
export function guard(scope: Scope, tokens: Tokens): onRequestAsyncHookHandler {
  return async (request, reply) => {
    if (tokens.ops === null) assertLocal(request);
    else assertAllowed(request, reply, { scope, tokens });
    await Promise.resolve();
  };
}

/** What the OpenAPI page says of the tokens that this server takes; nothing where it has none. */
export function securitySchemesOf({ ledger, ops }: Tokens): Pick<HttpAppOptions, 'securitySchemes'> {
  if (ops === null) return {};
  const bearer = { type: 'http', scheme: 'bearer' } as const;
  const opsToken = { ...bearer, description: 'OPS_TOKEN of this server: for everything.' };
  const ledgerToken = { ...bearer, description: 'LEDGER_TOKEN of this server: for producers’ ledgers alone.' };
  return { securitySchemes: ledger === null ? { opsToken } : { opsToken, ledgerToken } };
}

/** Has each route of a scope say on the OpenAPI page which of the tokens `guard` takes for it. */
export function securityOf(scope: Scope, { ledger, ops }: Tokens): onRouteHookHandler {
  const either = scope === 'ledger' && ledger !== null ? [{ opsToken: [] }, { ledgerToken: [] }] : [{ opsToken: [] }];
  return (route) => {
    if (ops !== null) route.schema = { ...route.schema, security: either };
  };
}

/** Without tokens only this machine may ask. A page in a browser of this machine, under a name that leads here, may not. */
function assertLocal({ headers, hostname }: FastifyRequest): void {
  const site = headers['sec-fetch-site'];
  if (site !== undefined && site !== 'same-origin' && site !== 'none') {
    const detail = 'a page of another site asks, and this server has no token';
    throw new ProblemError(problem('forbidden', detail, [{ header: 'sec-fetch-site', detail: 'is another site' }]));
  }
  const name = hostname.replace(/^\[(.*)\]$/, '$1');
  if (isLoopback(name)) return;
  const detail = `this server has no token, and answers under a loopback name only, not ${JSON.stringify(hostname)}`;
  throw new ProblemError(problem('misdirected', detail, [{ header: 'host', detail: 'is no loopback name' }]));
}

function assertAllowed(
  { headers }: FastifyRequest,
  reply: FastifyReply,
  { scope, tokens }: { scope: Scope; tokens: Tokens },
): void {
  const access = accessOf(headers.authorization, { scope, tokens });
  if (access === 'allowed') return;
  if (access === 'forbidden') {
    throw new ProblemError(
      problem('forbidden', 'LEDGER_TOKEN is for /ledger and /groups only; accepted here: OPS_TOKEN'),
    );
  }
  reply.header('www-authenticate', 'Bearer');
  const detail = 'send Authorization: Bearer, and a token that this server takes';
  throw new ProblemError(
    problem('unauthorized', detail, [{ header: 'authorization', detail: 'is missing or unknown' }]),
  );
}
