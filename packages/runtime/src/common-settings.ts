import { LOG_LEVELS } from './logger.js';
import {
  brokerEndpoints,
  choice,
  flag,
  integer,
  mongodbUri,
  optionalArchiveLocation,
  optionalText,
  setting,
  text,
} from './settings.js';
import { tracingSettings } from './tracing/settings.js';

/** Every service has these. Without a port of its own a service must not guess one: `defaultPort` is its documented one. */
export function commonSettings(options: { defaultPort: number }) {
  return {
    host: setting({
      name: 'HOST',
      kind: text({ charactersMax: 255 }),
      default: '127.0.0.1',
      description:
        'Address to listen on. Anything but a loopback address makes the service reachable from other machines.',
    }),
    port: setting({
      name: 'PORT',
      kind: integer({ min: 0, max: 65_535 }),
      default: String(options.defaultPort),
      description: 'Port to listen on; 0 takes a free one, which the log then names.',
    }),
    logLevel: setting({
      name: 'LOG_LEVEL',
      kind: choice(LOG_LEVELS),
      default: 'info',
      description: 'Least severe level that is logged.',
    }),
    shutdownMs: setting({
      name: 'SHUTDOWN_MS',
      kind: integer({ min: 100, max: 600_000 }),
      unit: 'ms',
      default: '5000',
      description:
        'Time to finish the work in hand after SIGTERM or SIGINT; what is left then is abandoned (and repeated after the restart).',
    }),
    ...tracingSettings(),
  };
}

export type CommonSettings = ReturnType<typeof commonSettings>;

/** Services with a database. */
export function mongodbSettings(options: { defaultDatabase: string }) {
  return {
    mongodbUri: setting({
      name: 'MONGODB_URI',
      kind: mongodbUri(),
      description:
        'The MongoDB deployment: a replica set or sharded cluster, since transactions and change streams need one.',
      secret: 'credentials',
    }),
    mongodbDatabase: setting({
      name: 'MONGODB_DB',
      kind: text({
        charactersMax: 38,
        pattern: /^[A-Za-z0-9_-]+$/,
        accepts: '1 to 38 letters, digits, _ or -',
      }),
      default: options.defaultDatabase,
      description: "The service's own database.",
    }),
  };
}

/** Services that write or read archive files. `purpose` says what for. */
export function archiveSetting(purpose: string) {
  return setting({
    name: 'ARCHIVE_FOLDER',
    kind: optionalArchiveLocation(),
    default: '',
    description: `${purpose} For S3, the SDK finds credentials, region and endpoint by itself: AWS_REGION, AWS_ENDPOINT_URL_S3 for a store that only speaks like S3, and so on.`,
    secret: 'location',
  });
}

/** Services that talk to the broker. */
export function rocketmqSettings() {
  return {
    rocketmqEndpoints: setting({
      name: 'ROCKETMQ_ENDPOINTS',
      kind: brokerEndpoints(),
      description: "RocketMQ's gRPC proxy.",
    }),
    rocketmqAccessKey: setting({
      name: 'ROCKETMQ_ACCESS_KEY',
      kind: optionalText({ charactersMax: 256 }),
      default: '',
      description: 'Access key, where the broker asks for credentials; goes with ROCKETMQ_SECRET_KEY.',
      secret: 'whole',
    }),
    rocketmqSecretKey: setting({
      name: 'ROCKETMQ_SECRET_KEY',
      kind: optionalText({ charactersMax: 256 }),
      default: '',
      description: 'Secret key that belongs to ROCKETMQ_ACCESS_KEY.',
      secret: 'whole',
    }),
    rocketmqTls: setting({
      name: 'ROCKETMQ_TLS',
      kind: flag(),
      default: 'false',
      description: 'Whether to speak TLS to the proxy.',
    }),
    rocketmqAlwaysUseEndpoints: setting({
      name: 'ROCKETMQ_ALWAYS_USE_ENDPOINTS',
      kind: flag(),
      default: 'false',
      description:
        'Whether to send everything to ROCKETMQ_ENDPOINTS, whatever addresses the broker names: needed behind a port mapping.',
    }),
  };
}
