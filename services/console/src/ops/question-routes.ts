import { ProblemError } from '@nightporter/http';
import {
  aggregateHistory,
  audit,
  operatorActions,
  relayStanding,
  search,
  serviceLevel,
  status,
  timeline,
  type AuditRequest,
} from '@nightporter/ledger';
import { eventId, type AggregateKey } from '@nightporter/protocol';
import type { FastifyPluginCallbackZod } from 'fastify-type-provider-zod';
import type { z } from 'zod';
import { problem } from '../http/problems.js';
import { answers } from './answers.js';
import type { Operations } from './operations.js';
import * as requests from './requests.js';

/** Where events are. Nothing here changes anything, but for the marks of an audit. */
export const questionRoutes: FastifyPluginCallbackZod<{ operations: Operations }> = (app, { operations }, done) => {
  const ask = <Response>(summary: string, response: Response) => ({ tags: ['questions'], summary, response });

  app.get('/status', { schema: ask('How everything stands', answers.status) }, async () =>
    status(await operations.deployment(), operations.client),
  );

  app.get('/relay', { schema: ask('Leases, checkpoints, repairs and pauses of the relay', answers.relay) }, async () =>
    relayStanding(await operations.relay()),
  );

  app.get(
    '/events',
    { schema: { ...ask('Searches events, newest first', answers.page), querystring: requests.searchQuery } },
    async ({ query: { timeoutSeconds, ...query } }) =>
      search(await operations.deployment(), { ...given(query), timeoutMs: timeoutSeconds * 1_000 }),
  );

  app.get(
    '/events/:eventId',
    { schema: { ...ask('What became of an event, step by step', answers.timeline), params: requests.eventParams } },
    async ({ params }) => {
      const found = await timeline(await operations.deployment(), eventId(params.eventId));
      if (found.kind !== 'unknown') return found;
      const detail = `no ledger and no group has event ${params.eventId}; looked in ${found.lookedIn.join(', ')}`;
      throw new ProblemError(problem('event-unknown', [detail, ...found.notKnown].join('. ')));
    },
  );

  app.get(
    '/history',
    {
      schema: {
        ...ask('Every version of an aggregate, and what each group made of it', answers.history),
        querystring: requests.historyQuery,
      },
    },
    async ({ query: { aggregate, ...page } }) =>
      aggregateHistory(await operations.deployment(), aggregate as AggregateKey, page),
  );

  app.get(
    '/audit',
    {
      schema: {
        ...ask('Whether committed = published = settled, and each difference', answers.audit),
        querystring: requests.auditQuery,
      },
    },
    async ({ query }, reply) =>
      operations.alone('an audit', async ({ signal, stop }) => {
        reply.raw.once('close', stop);
        return audit(await operations.deployment(), { ...auditOf(query), signal });
      }),
  );

  app.get(
    '/slo',
    {
      schema: {
        ...ask('Whether each group settles events in time, by windows, and what that calls for', answers.slo),
        querystring: requests.sloQuery,
      },
    },
    async ({ query: { group, sample, thresholdSeconds } }) =>
      serviceLevel(await operations.deployment(), {
        thresholdMs: thresholdSeconds * 1_000,
        recordsMax: sample,
        ...(group === undefined ? {} : { group }),
      }),
  );

  app.get(
    '/actions',
    { schema: { ...ask('What operators did, newest first', answers.actions), querystring: requests.limitQuery } },
    async ({ query }) => ({ actions: await operatorActions(await operations.deployment(), query.limit) }),
  );
  done();
};

function auditOf(query: z.output<typeof requests.auditQuery>): AuditRequest {
  const { full, graceSeconds, group, inboxRetentionDays, lagSeconds, limit, producer } = query;
  return {
    full,
    graceMs: graceSeconds * 1_000,
    lagMs: lagSeconds * 1_000,
    inboxRetentionMs: inboxRetentionDays * 86_400_000,
    differencesMax: limit,
    ...(group === undefined ? {} : { groups: group }),
    ...(producer === undefined ? {} : { producers: producer }),
  };
}

/** A query without what was not asked for. */
function given<Query extends object>(query: Query): { [Key in keyof Query]: Exclude<Query[Key], undefined> } {
  const entries = Object.entries(query).filter(([, value]) => value !== undefined);
  return Object.fromEntries(entries) as { [Key in keyof Query]: Exclude<Query[Key], undefined> };
}
