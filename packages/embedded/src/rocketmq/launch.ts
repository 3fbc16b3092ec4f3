import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { assetPath } from '../assets.js';
import type { Surroundings } from '../options.js';
import type { PortReservation } from '../tools/ports.js';
import { rocketMqConfig, type RocketMqPorts, type Settings } from './config.js';
import { Jvm } from './jvm.js';

/** What a JVM with RocketMQ is started from. */
export interface Runtime {
  java: string;
  /** Every jar, the launcher's first. */
  classPath: string[];
  /** `-XX:SharedArchiveFile=…` where there is a class archive. */
  archiveFlags: string[];
}

export interface JvmRequest {
  runtime: Runtime;
  /** For data, configuration and logs. */
  folder: string;
  ports: RocketMqPorts;
  at: Surroundings;
  brokerSettings?: Settings;
  proxySettings?: Settings;
}

export function rocketMqPorts(reservation: PortReservation): RocketMqPorts {
  return {
    nameServer: reservation.port(0),
    proxy: reservation.port(1),
    broker: reservation.port(4),
    metrics: reservation.port(5),
    unused: reservation.port(6),
  };
}

/** Writes the configuration and describes the JVM, without starting it. */
export function rocketMqJvm({ runtime, folder, ports, at, brokerSettings = {}, proxySettings = {} }: JvmRequest): Jvm {
  mkdirSync(join(folder, 'store'), { recursive: true });
  const config = rocketMqConfig({ folder, ports, brokerSettings, proxySettings });
  const files = {
    nameServer: join(folder, 'name-server.conf'),
    broker: join(folder, 'broker.conf'),
    proxy: join(folder, 'proxy.json'),
  };
  writeFileSync(files.nameServer, config.nameServer);
  writeFileSync(files.broker, config.broker);
  writeFileSync(files.proxy, config.proxy);
  return jvm({
    runtime,
    folder,
    at,
    name: `RocketMQ on port ${ports.proxy}`,
    main: ['Launcher', files.nameServer, files.broker, files.proxy],
  });
}

/** A JVM that speaks the same language on behalf of a cluster that somebody else runs. */
export function clusterAdminJvm(request: {
  runtime: Runtime;
  folder: string;
  at: Surroundings;
  nameServer: string;
}): Jvm {
  return jvm({
    ...request,
    name: `The admin client of ${request.nameServer}`,
    main: ['ClusterAdmin', request.nameServer],
  });
}

interface JvmParts {
  runtime: Runtime;
  folder: string;
  at: Surroundings;
  name: string;
  main: [className: string, ...parameters: string[]];
}

/** Where the JVM puts what it unpacks: in its own folder, so that it goes with it, even after a kill. */
function temporaryFolder(folder: string): string {
  const path = join(folder, 'tmp');
  mkdirSync(path, { recursive: true });
  return path;
}

function jvm({ runtime, folder, at, name, main: [className, ...parameters] }: JvmParts): Jvm {
  return new Jvm({
    java: runtime.java,
    arguments: [
      `-Djava.io.tmpdir=${temporaryFolder(folder)}`,
      ...jvmFlags(folder),
      ...runtime.archiveFlags,
      '-cp',
      runtime.classPath.join(':'),
      `nightporter.rocketmq.${className}`,
      ...parameters,
    ],
    environment: { ...at.environment, ROCKETMQ_HOME: folder },
    folder,
    logFiles: [join(folder, 'output.log'), join(folder, 'rocketmq.log')],
    name,
    onUnexpectedExit: at.onUnexpectedExit,
  });
}

/** The first-tier compiler and a serial collector start fastest; a throwaway broker has no time to warm up. */
function jvmFlags(folder: string): string[] {
  const opened = ['java.nio', 'sun.nio.ch', 'java.lang', 'jdk.internal.ref'];
  return [
    '-Xms256m',
    '-Xmx512m',
    '-XX:MaxDirectMemorySize=256m',
    '-XX:+UseSerialGC',
    '-XX:TieredStopAtLevel=1',
    '-Xshare:auto',
    // Standard output is the launcher's; the JVM would warn there.
    '-XX:+DisplayVMOutputToStderr',
    '-Xlog:disable',
    '-Xlog:all=warning:stderr',
    '-Dtls.server.mode=disabled',
    // RocketMQ would log and keep files in the home folder.
    `-Duser.home=${folder}`,
    `-Drmq.logback.configurationFile=${assetPath('rocketmq', 'logback.xml')}`,
    `-Dnightporter.log=${join(folder, 'rocketmq.log')}`,
    ...opened.flatMap((name) => ['--add-opens', `java.base/${name}=ALL-UNNAMED`]),
  ];
}
