import { connectMongo, engineOf } from '@nightporter/mongo';
import type { ConfigOf, RunningService, ServiceContext, ServiceDefinition } from '@nightporter/runtime';
import { buildConsole } from './http/app.js';
import { openProducers } from './producers.js';
import { consoleSettings } from './settings.js';
import { assertGuarded } from './tokens.js';

async function start({ config, logger }: ServiceContext<ConfigOf<typeof consoleSettings>>): Promise<RunningService> {
  const tokens = { ops: config.opsToken, ledger: config.ledgerToken };
  assertGuarded(config.host, tokens);
  const client = await connectMongo({ uri: config.mongodbUri, appName: 'console' });
  const app = await buildConsole({
    producers: openProducers(client, { databases: config.producers, archiveFolder: config.archiveFolder }),
    tokens,
    logger,
    checks: {
      database: async () => {
        await client.db('admin').command({ ping: 1 });
        return null;
      },
    },
    bodyBytesMax: config.bodyBytesMax,
    requestsPerMinuteMax: config.requestsPerMinuteMax,
  });
  const address = await app.listen({ host: config.host, port: config.port });
  logger.info({ address, producers: config.producers, ...(await engineOf(client)) }, 'serving ledgers');
  return {
    ended: new Promise<never>(() => undefined),
    stop: async () => {
      await app.close();
      await client.close();
    },
  };
}

export const consoleService: ServiceDefinition<typeof consoleSettings> = {
  name: 'console',
  description: 'Producers’ ledgers over HTTP, for groups that may not read their databases.',
  config: consoleSettings,
  start,
};
