import { ProblemError } from '@nightporter/http';
import { actOnOutbox, listOutbox } from '@nightporter/ledger';
import { pauseRelay, resumeRelay } from '@nightporter/mongo';
import { eventId } from '@nightporter/protocol';
import type { FastifyPluginCallbackZod } from 'fastify-type-provider-zod';
import { problem } from '../http/problems.js';
import { answers } from './answers.js';
import { assertConfirmed } from './confirmed.js';
import { filterOf } from './dead-letter-filter.js';
import type { Operations } from './operations.js';
import * as requests from './requests.js';

/** What operators do with events that the relay has given up, and with the relay. Each act is one transaction with its record. */
export const outboxRoutes: FastifyPluginCallbackZod<{ operations: Operations }> = (app, { operations }, done) => {
  const about = <Response>(summary: string, response: Response) => ({ tags: ['outbox'], summary, response });

  app.get(
    '/outbox',
    { schema: { ...about('Rows that are not published', answers.outboxRows), querystring: requests.outboxQuery } },
    async ({ query }) => ({ rows: await listOutbox(await operations.deployment(), query) }),
  );
  app.post(
    '/outbox/:eventId/retry',
    {
      schema: {
        ...about('Has the relay try a dead event again', answers.done),
        params: requests.eventParams,
        body: requests.decisionBody,
      },
    },
    async ({ body, params }) => {
      const request = { eventId: eventId(params.eventId), ...body };
      return acted(await actOnOutbox(await operations.deployment(), 'retry', request));
    },
  );
  app.post(
    '/outbox/:eventId/skip',
    {
      schema: {
        ...about('Has a tombstone published in place of a dead event', answers.done),
        params: requests.eventParams,
        body: requests.confirmedBody,
      },
    },
    async ({ body: { by, confirm, reason }, params }) => {
      assertConfirmed(confirm, params.eventId);
      const request = { eventId: eventId(params.eventId), by, reason };
      return acted(await actOnOutbox(await operations.deployment(), 'skip', request));
    },
  );
  for (const [action, run] of [
    ['pause', pauseRelay],
    ['resume', resumeRelay],
  ] as const) {
    const summary = action === 'pause' ? 'Has relays send nothing, or nothing of one topic' : 'Takes a pause back';
    app.post(
      `/relay/${action}`,
      { schema: { tags: ['relay'], summary, body: requests.pauseBody, response: answers.paused } },
      async ({ body }) => {
        const { client, database } = await operations.relay();
        return run(client, database, body);
      },
    );
  }
  done();
};

/** What operators do with dead letters of a group: on the revision that they saw. */
export const deadLetterRoutes: FastifyPluginCallbackZod<{ operations: Operations }> = (app, { operations }, done) => {
  const about = <Response>(summary: string, response: Response) => ({ tags: ['dead letters'], summary, response });
  const path = '/groups/:group/dead-letters';

  app.get(
    path,
    {
      schema: {
        ...about('Dead letters, those that failed first before others', answers.deadLetters),
        params: requests.groupParams,
        querystring: requests.deadLetterQuery,
      },
    },
    async ({ params, query: { limit, ...filter } }) => ({
      deadLetters: await (await operations.deadLetters(params.group)).list(filterOf(filter), limit),
    }),
  );
  app.get(
    `${path}/:eventId`,
    { schema: { ...about('One dead letter, whole', answers.oneDeadLetter), params: requests.deadLetterParams } },
    async ({ params }) => {
      const found = await (await operations.deadLetters(params.group)).show(eventId(params.eventId));
      if (found !== null) return found;
      throw new ProblemError(problem('event-unknown', `group ${params.group} has no dead letter ${params.eventId}`));
    },
  );
  app.post(
    `${path}/:eventId/retry`,
    {
      schema: {
        ...about('Has it run again', answers.done),
        params: requests.deadLetterParams,
        body: requests.targetBody,
      },
    },
    async ({ body: { revision, ...decision }, params }) =>
      acted(
        await (
          await operations.deadLetters(params.group)
        ).retry({ eventId: eventId(params.eventId), revision }, decision),
      ),
  );
  app.post(
    `${path}/:eventId/edit`,
    {
      schema: {
        ...about('Has other data applied in its place, on record', answers.done),
        params: requests.deadLetterParams,
        body: requests.editBody,
      },
    },
    async ({ body: { confirm, data, revision, ...decision }, params }) => {
      assertConfirmed(confirm, params.eventId);
      const letters = await operations.deadLetters(params.group);
      return acted(await letters.editAndRetry({ eventId: eventId(params.eventId), revision }, { ...decision, data }));
    },
  );
  app.post(
    `${path}/:eventId/skip`,
    {
      schema: {
        ...about('Settles it without an effect', answers.done),
        params: requests.deadLetterParams,
        body: requests.confirmedTargetBody,
      },
    },
    async ({ body: { confirm, revision, ...decision }, params }) => {
      assertConfirmed(confirm, params.eventId);
      const letters = await operations.deadLetters(params.group);
      return acted(await letters.skip({ eventId: eventId(params.eventId), revision }, decision));
    },
  );
  app.get(
    '/groups/:group/set-aside',
    {
      schema: {
        ...about('Messages without a place in any sequence', answers.setAside),
        params: requests.groupParams,
        querystring: requests.limitQuery,
      },
    },
    async ({ params, query }) => {
      const aside = await (await operations.deadLetters(params.group)).listSetAside(query.limit);
      return { setAside: aside.map(({ body, ...rest }) => ({ ...rest, body: Buffer.from(body).toString('base64') })) };
    },
  );
  app.post(
    '/groups/:group/set-aside/:id/dismiss',
    {
      schema: {
        ...about('Takes a message from the list; no position changes', answers.done),
        params: requests.setAsideParams,
        body: requests.dismissBody,
      },
    },
    async ({ body: { confirm, count, ...decision }, params }) => {
      assertConfirmed(confirm, params.id);
      return acted(await (await operations.deadLetters(params.group)).dismiss({ id: params.id, count }, decision));
    },
  );
  done();
};

/** What was not done is a refusal: the operator looks again and decides anew. */
function acted<Outcome extends { readonly kind: string }>(outcome: Outcome): Outcome {
  if (outcome.kind === 'done') return outcome;
  if (outcome.kind === 'gone' || outcome.kind === 'missing') {
    throw new ProblemError(problem('event-unknown', 'there is no such event here (any more); look again'));
  }
  throw new ProblemError({
    ...problem('changed', `nothing was done: ${JSON.stringify(outcome)}; look again and decide anew`),
  });
}
