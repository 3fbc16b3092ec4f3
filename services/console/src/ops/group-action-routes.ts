import { ProblemError } from '@nightporter/http';
import { groupStandings, removeGroup, replayOfGroup, type GroupStandingRow, type Selection } from '@nightporter/ledger';
import type { AggregateKey } from '@nightporter/protocol';
import type { FastifyPluginCallbackZod } from 'fastify-type-provider-zod';
import type { MongoClient } from 'mongodb';
import { problem } from '../http/problems.js';
import { answers } from './answers.js';
import { assertConfirmed } from './confirmed.js';
import type { Operations } from './operations.js';
import * as requests from './requests.js';

/** What operators do with whole groups: look at them, have events replayed into them, remove them. */
export const groupActionRoutes: FastifyPluginCallbackZod<{ operations: Operations }> = (app, { operations }, done) => {
  const about = <Response>(summary: string, response: Response) => ({
    tags: ['groups of consumers'],
    summary,
    response,
  });

  app.get(
    '/groups',
    { schema: about('Every group with each producer, and how far it is', answers.groups) },
    async () => {
      const deployment = await operations.deployment();
      const groups: GroupStandingRow[] = [];
      for (const producer of deployment.producers) groups.push(...(await groupStandings(deployment, producer)));
      return { groups };
    },
  );

  app.post(
    '/groups/:group/replays/plan',
    {
      schema: {
        ...about('What a replay would select; nothing is written', answers.plan),
        params: requests.groupParams,
        body: requests.planBody,
      },
    },
    async ({ body: { into, topics, ...selection }, params: { group } }) =>
      operations.alone('a replay', async () => {
        const replay = await replayOfGroup(await operations.deployment(), await operations.home(group), topics);
        return replay.plan({ ...selectionOf(selection), into });
      }),
  );

  app.post(
    '/groups/:group/replays',
    {
      schema: {
        ...about('Parks published events in the group, for its workers to run', answers.replayed),
        params: requests.groupParams,
        body: requests.replayBody,
      },
    },
    async ({ body: { by, into, ratePerSecond, reason, topics, ...selection }, params: { group } }) =>
      operations.alone('a replay', async () => {
        const replay = await replayOfGroup(await operations.deployment(), await operations.home(group), topics);
        const rate = ratePerSecond === undefined ? {} : { ratePerSecond };
        const result = await replay.run({ ...selectionOf(selection), ...rate, into, by, reason });
        operations.forget();
        return result;
      }),
  );

  app.post(
    '/groups/:group/remove',
    {
      schema: {
        ...about('Takes a group out of the registry of every producer; its workers must be stopped', answers.removed),
        params: requests.groupParams,
        body: requests.removalBody,
      },
    },
    async ({ body: { by, confirm, reason, withData }, params: { group } }) => {
      assertConfirmed(confirm, group);
      return operations.alone('a removal', async () => {
        const { client } = operations;
        const { producers } = await operations.deployment();
        const data = withData ? await dataOf(operations, group) : {};
        const databases = producers.map(({ database }) => database);
        const result = await removeGroup({ client, group, producers: databases, by, reason, ...data });
        operations.forget();
        if (result.unregistered.length > 0 || Object.values(result.deleted).some((rows) => rows > 0)) return result;
        throw new ProblemError(
          problem('group-unknown', `group ${JSON.stringify(group)} was not registered, and had no data`),
        );
      });
    },
  );
  done();
};

/** Looked up before anything is removed: afterwards nobody would know where it is. */
async function dataOf(operations: Operations, group: string): Promise<{ dataIn: string; dataClient: MongoClient }> {
  const { client, database } = await operations.home(group);
  return { dataIn: database, dataClient: client };
}

type Selected = { readonly [Key in 'aggregates' | 'eventTypes']?: readonly string[] | undefined } & {
  readonly [Key in 'publishedFrom' | 'publishedBefore']?: Date | undefined;
};

function selectionOf({ aggregates, eventTypes, publishedBefore, publishedFrom }: Selected): Selection {
  return {
    ...(aggregates === undefined ? {} : { aggregates: aggregates as readonly AggregateKey[] }),
    ...(eventTypes === undefined ? {} : { eventTypes }),
    ...(publishedFrom === undefined ? {} : { publishedFrom }),
    ...(publishedBefore === undefined ? {} : { publishedBefore }),
  };
}
