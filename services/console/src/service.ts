import { openArchive } from '@nightporter/archive';
import { connectMongo, engineOf } from '@nightporter/mongo';
import type { ConfigOf, RunningService, ServiceContext, ServiceDefinition } from '@nightporter/runtime';
import { brokerOf } from './broker.js';
import { buildConsole } from './http/app.js';
import { openGroupHomes } from './group-homes.js';
import { createOperations } from './ops/operations.js';
import { openProducers } from './producers.js';
import { consoleSettings } from './settings.js';
import { assertGuarded } from './tokens.js';

const HOUR_MS = 3_600_000;

async function start({
  config,
  logger,
  tracing = null,
}: ServiceContext<ConfigOf<typeof consoleSettings>>): Promise<RunningService> {
  const tokens = { ops: config.opsToken, ledger: config.ledgerToken };
  assertGuarded(config.host, tokens);
  const broker = brokerOf(config, logger);
  const files = config.archiveFolder === null ? null : await openArchive(config.archiveFolder);
  const archive = files === null ? {} : { files };
  const client = await connectMongo({ uri: config.mongodbUri, appName: 'console' });
  const homes = await openGroupHomes(client, config.groups);
  const app = await buildConsole({
    producers: openProducers(client, { databases: config.producers, files }),
    operations: createOperations(client, {
      producers: config.producers.map((database) => ({ client, database, ...archive })),
      relayDatabase: config.relayDatabase,
      groups: homes.groups,
    }),
    liveEveryMs: config.liveEveryMs,
    tokens,
    logger,
    tracing,
    checks: {
      database: async () => {
        await client.db('admin').command({ ping: 1 });
        return null;
      },
    },
    archive: files,
    broker,
    brokerRetentionMs: config.brokerRetentionHours * HOUR_MS,
    bodyBytesMax: config.bodyBytesMax,
    requestsPerMinuteMax: config.requestsPerMinuteMax,
  });
  const address = await app.listen({ host: config.host, port: config.port });
  logger.info({ address, producers: config.producers, ...(await engineOf(client)) }, 'serving operators and ledgers');
  return {
    ended: new Promise<never>(() => undefined),
    stop: async () => {
      await app.close();
      await Promise.all([client.close(), homes.close()]);
    },
  };
}

export const consoleService: ServiceDefinition<typeof consoleSettings> = {
  name: 'console',
  description:
    'Where every event is and what mends it, over HTTP; and producers’ ledgers for groups that may not read their databases.',
  config: consoleSettings,
  start,
};
