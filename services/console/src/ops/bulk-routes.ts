import type { DeadLetters } from '@nightporter/ledger';
import type { FastifyPluginCallbackZod } from 'fastify-type-provider-zod';
import type { z } from 'zod';
import { answers } from './answers.js';
import { assertConfirmed } from './confirmed.js';
import { filterOf } from './dead-letter-filter.js';
import type { Operations } from './operations.js';
import * as requests from './requests.js';

type Bulk = z.output<typeof requests.bulkRetryBody>;

/** Decides about all dead letters of a group that a filter finds, a transaction each. What one of them meets does not undo the others. */
export const bulkRoutes: FastifyPluginCallbackZod<{ operations: Operations }> = (app, { operations }, done) => {
  const about = (summary: string) => ({
    tags: ['dead letters'],
    summary,
    params: requests.groupParams,
    response: answers.bulk,
  });
  const path = '/groups/:group/dead-letters';

  app.post(
    `${path}/retry`,
    { schema: { ...about('Has all that a filter finds run again'), body: requests.bulkRetryBody } },
    async ({ body, params }) => act(await operations.deadLetters(params.group), 'retry', body),
  );
  app.post(
    `${path}/skip`,
    { schema: { ...about('Settles all that a filter finds without an effect'), body: requests.bulkSkipBody } },
    async ({ body: { confirm = '', ...body }, params }) => {
      if (!body.dryRun) assertConfirmed(confirm, params.group);
      return act(await operations.deadLetters(params.group), 'skip', body);
    },
  );
  done();
};

async function act(letters: DeadLetters, action: 'retry' | 'skip', { dryRun, filter, limit, ...decision }: Bulk) {
  const wanted = { filter: filterOf(filter), limit };
  if (dryRun) return { kind: 'planned', deadLetters: await letters.planBulk(wanted) } as const;
  return { kind: 'acted', ...(await letters.bulk(action, { ...decision, ...wanted })) } as const;
}
