import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { NightporterError } from '@nightporter/protocol';
import { takeDataFolder } from '../data-folder.js';
import { assertReachable, externalServer } from '../external-server.js';
import type { Surroundings } from '../options.js';
import { rocketMqAdmin, type Ask } from './admin.js';
import { clusterAdminJvm } from './launch.js';
import { prepareRocketMq } from './prepare-rocketmq.js';
import type { RocketMqServer } from './start-rocketmq.js';

/** What RocketMQ's own tools read. */
const NAME_SERVER_VARIABLE = 'NAMESRV_ADDR';

/**
 * A proxy that somebody else runs. Topics and groups can be created when NAMESRV_ADDR names its name servers: an admin client
 * is started at the first such call. Clients that have asked for a topic too early may there wait for 20 s, as in production.
 */
export async function externalRocketMq(endpoints: string, at: Surroundings): Promise<RocketMqServer> {
  await assertReachable({ variable: 'ROCKETMQ_ENDPOINTS', endpoints });
  const nameServer = at.environment[NAME_SERVER_VARIABLE];
  const admin = nameServer === undefined || nameServer === '' ? undefined : lazyAdmin(nameServer, at);
  const ask: Ask = (request) => (admin === undefined ? Promise.reject(refusal(request.operation)) : admin.ask(request));
  return {
    ...externalServer({ variable: 'ROCKETMQ_ENDPOINTS', version: 'unknown' }),
    ...rocketMqAdmin(ask),
    stop: () => admin?.stop() ?? Promise.resolve(),
    endpoints,
    nameServer,
    metricsPort: undefined,
  };
}

interface LazyAdmin {
  ask: Ask;
  stop: () => Promise<void>;
}

function lazyAdmin(nameServer: string, at: Surroundings): LazyAdmin {
  let started: Promise<{ ask: Ask; stop: () => Promise<void> }> | undefined;
  const start = async () => {
    const folder = takeDataFolder(undefined);
    const home = join(folder.path, 'rocketmq-admin');
    mkdirSync(home);
    const jvm = clusterAdminJvm({ runtime: await prepareRocketMq(at), folder: home, at, nameServer });
    await jvm.start();
    const stop = async () => {
      await jvm.kill();
      folder.release();
    };
    return { ask: (request: Parameters<Ask>[0]) => jvm.ask(request), stop };
  };
  return {
    ask: async (request) => {
      started ??= start();
      return (await started).ask(request);
    },
    stop: async () => {
      await (await started)?.stop();
    },
  };
}

function refusal(operation: string): NightporterError {
  return new NightporterError(
    'NP_EMBEDDED_NOT_OURS',
    `${operation} needs the name servers of the RocketMQ given by ROCKETMQ_ENDPOINTS: set ${NAME_SERVER_VARIABLE} to host:port, or use mqadmin`,
  );
}
