/** The configuration files of the three parts, as pure text. */

export interface RocketMqPorts {
  nameServer: number;
  proxy: number;
  /** The broker also listens two ports below this one. */
  broker: number;
  metrics: number;
  /** Written into the configuration and never opened. */
  unused: number;
}

export type Settings = Record<string, string | number | boolean>;

interface ConfigRequest {
  folder: string;
  ports: RocketMqPorts;
  /** Win over what is set here. */
  brokerSettings: Settings;
  proxySettings: Settings;
}

export interface RocketMqConfig {
  nameServer: string;
  broker: string;
  proxy: string;
}

export function rocketMqConfig(request: ConfigRequest): RocketMqConfig {
  return {
    nameServer: properties({
      bindAddress: '127.0.0.1',
      listenPort: request.ports.nameServer,
      kvConfigPath: `${request.folder}/name-server/kvConfig.json`,
    }),
    broker: properties({ ...broker(request), ...request.brokerSettings }),
    proxy: `${JSON.stringify({ ...proxy(request), ...request.proxySettings }, undefined, 2)}\n`,
  };
}

function broker({ folder, ports }: ConfigRequest): Settings {
  return {
    brokerClusterName: 'DefaultCluster',
    brokerName: 'broker-a',
    brokerId: 0,
    brokerRole: 'ASYNC_MASTER',
    // A kill of the process loses nothing: the page cache belongs to the operating system.
    flushDiskType: 'ASYNC_FLUSH',
    namesrvAddr: `127.0.0.1:${ports.nameServer}`,
    brokerIP1: '127.0.0.1',
    brokerIP2: '127.0.0.1',
    bindAddress: '127.0.0.1',
    listenPort: ports.broker,
    haListenPort: ports.unused,
    storePathRootDir: `${folder}/store`,
    storePathCommitLog: `${folder}/store/commitlog`,
    // Small files: the defaults would take 1 GiB for the first message.
    mappedFileSizeCommitLog: 67_108_864,
    mappedFileSizeConsumeQueue: 600_000,
    mappedFileSizeTimerLog: 8_388_608,
    // Each flush copies the whole timer wheel: at its default of one second an idle broker takes a quarter of a core.
    timerFlushIntervalMs: 60_000,
    maxIndexNum: 200_000,
    maxHashSlotNum: 50_000,
    flushConsumerOffsetInterval: 500,
    // The developer's disk may be fuller than a broker's should be.
    diskMaxUsedSpaceRatio: 98,
    diskSpaceWarningLevelRatio: 99,
    diskSpaceCleanForciblyRatio: 99,
    // A topic that is created by the first send has no message type, and a group no order.
    autoCreateTopicEnable: false,
    autoCreateSubscriptionGroup: false,
    enableCompaction: false,
    // On a busy machine 200 ms (the default) refuses sends that nothing is wrong with.
    waitTimeMillsInSendQueue: 2_000,
    metricsExporterType: 'PROM',
    metricsPromExporterHost: '127.0.0.1',
    metricsPromExporterPort: ports.metrics,
  };
}

function proxy({ ports }: ConfigRequest): Settings {
  return {
    rocketMQClusterName: 'DefaultCluster',
    proxyMode: 'local',
    namesrvAddr: `127.0.0.1:${ports.nameServer}`,
    localServeAddr: '127.0.0.1',
    grpcServerPort: ports.proxy,
    remotingListenPort: ports.unused,
    // Routes lead back through the address that the client used, so a fault proxy stays in the way.
    useEndpointPortFromRequest: true,
    // The defaults (10 s and 5 s) would make every test of a redelivery or of an empty topic slow.
    minInvisibleTimeMillsForRecv: 1_000,
    grpcClientConsumerMinLongPollingTimeoutMillis: 500,
    topicRouteServiceCacheRefreshSeconds: 2,
  };
}

function properties(settings: Settings): string {
  return Object.entries(settings)
    .map(([name, value]) => `${name}=${String(value)}\n`)
    .join('');
}
