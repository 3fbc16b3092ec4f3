import { join } from 'node:path';
import { takeDataFolder, type DataFolder } from '../data-folder.js';
import { surroundings, type EmbeddedOptions, type Surroundings } from '../options.js';
import { ownedServer } from '../owned-server.js';
import type { EmbeddedServer } from '../server.js';
import { isPortTaken, reservePorts, type PortReservation } from '../tools/ports.js';
import { rocketMqAdmin, type GroupRequest, type RocketMqAdmin, type TopicRequest } from './admin.js';
import type { Settings } from './config.js';
import { externalRocketMq } from './external-rocketmq.js';
import { rocketMqJvm, rocketMqPorts, type Runtime } from './launch.js';
import { prepareRocketMq, ROCKETMQ_VERSION } from './prepare-rocketmq.js';

const PORT_ATTEMPTS = 5;
const ENDPOINTS_VARIABLE = 'ROCKETMQ_ENDPOINTS';

export interface RocketMqOptions extends EmbeddedOptions {
  /** Created before the start resolves. */
  topics?: TopicRequest[];
  /** Created after the topics. */
  groups?: GroupRequest[];
  /** Further settings of broker.conf. */
  brokerSettings?: Settings;
  /** Further settings of the proxy, such as minInvisibleTimeMillsForRecv (1,000 here, 10,000 in production). */
  proxySettings?: Settings;
}

export interface RocketMqServer extends EmbeddedServer, RocketMqAdmin {
  /** host:port of the gRPC proxy. */
  readonly endpoints: string;
  /** host:port for `mqadmin -n`. Undefined for a server given from outside that names none. */
  readonly nameServer: string | undefined;
  /** Serves Prometheus metrics of broker and proxy. */
  readonly metricsPort: number | undefined;
}

/** A real RocketMQ on the loopback interface: ROCKETMQ_ENDPOINTS as it is, else name server, broker and proxy in one JVM of ours. */
export function startRocketMq(options: RocketMqOptions = {}): Promise<RocketMqServer> {
  return startRocketMqIn(options, () => takeDataFolder(options.dataFolder));
}

/** The folder is taken only when a server of ours needs it. */
export async function startRocketMqIn(options: RocketMqOptions, takeFolder: () => DataFolder): Promise<RocketMqServer> {
  const at = surroundings(options);
  const endpoints = at.environment[ENDPOINTS_VARIABLE];
  const isGiven = endpoints !== undefined && endpoints !== '';
  const server = isGiven
    ? await externalRocketMq(endpoints, at)
    : await startOwn({ options, at, folder: takeFolder() });
  try {
    for (const topic of options.topics ?? []) await server.createTopic(topic);
    for (const group of options.groups ?? []) await server.createGroup(group);
  } catch (error) {
    await server.stop();
    throw error;
  }
  return server;
}

interface Launch {
  options: RocketMqOptions;
  at: Surroundings;
  folder: DataFolder;
}

async function startOwn(request: Launch): Promise<RocketMqServer> {
  try {
    const runtime = await prepareRocketMq(request.at);
    for (let attempt = 1; ; attempt += 1) {
      const ports = await reservePorts();
      try {
        return await launchOn({ ...request, ports, runtime });
      } catch (error) {
        ports.release();
        if (attempt === PORT_ATTEMPTS || !isPortTaken(error)) throw error;
      }
    }
  } catch (error) {
    request.folder.release();
    throw error;
  }
}

async function launchOn(request: Launch & { ports: PortReservation; runtime: Runtime }): Promise<RocketMqServer> {
  const { options, at, folder, runtime } = request;
  const ports = rocketMqPorts(request.ports);
  const jvm = rocketMqJvm({
    runtime,
    folder: join(folder.path, 'rocketmq'),
    ports,
    at,
    brokerSettings: options.brokerSettings ?? {},
    proxySettings: options.proxySettings ?? {},
  });
  await jvm.start();
  const name = `RocketMQ on port ${ports.proxy}`;
  at.progress(`RocketMQ ${ROCKETMQ_VERSION} is ready at port ${ports.proxy}`);
  const server = ownedServer({ name, version: ROCKETMQ_VERSION, process: jvm, ports: request.ports, folder });
  return Object.assign(
    server,
    rocketMqAdmin((request) => jvm.ask(request)),
    {
      endpoints: `127.0.0.1:${ports.proxy}`,
      nameServer: `127.0.0.1:${ports.nameServer}`,
      metricsPort: ports.metrics,
    },
  );
}
