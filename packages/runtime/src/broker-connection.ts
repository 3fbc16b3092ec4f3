import { NightporterError } from '@nightporter/protocol';
import type { rocketmqSettings } from './common-settings.js';
import type { Logger } from './logger.js';
import type { ConfigOf } from './settings.js';

/** What a client of the broker is given; the shape that `@nightporter/rocketmq` takes. */
export interface BrokerConnection {
  readonly endpoints: string;
  readonly tls: boolean;
  readonly alwaysUseEndpoints: boolean;
  readonly credentials?: { readonly accessKey: string; readonly accessSecret: string };
  readonly log: (level: 'debug' | 'info' | 'warn' | 'error', message: string) => void;
}

/** What the settings say about the broker. The client's own log joins ours, at level debug: it calls every retry of its own an error, and what matters reaches us as a rejection. */
export function brokerConnection(
  config: ConfigOf<ReturnType<typeof rocketmqSettings>>,
  logger: Logger,
): BrokerConnection {
  const { rocketmqAccessKey: accessKey, rocketmqSecretKey: accessSecret } = config;
  if ((accessKey === null) !== (accessSecret === null)) {
    throw new NightporterError(
      'NP_CONFIG_INVALID',
      'ROCKETMQ_ACCESS_KEY and ROCKETMQ_SECRET_KEY go together: set both or neither',
    );
  }
  const log = logger.child({ component: 'rocketmq-client' });
  return {
    endpoints: config.rocketmqEndpoints,
    tls: config.rocketmqTls,
    alwaysUseEndpoints: config.rocketmqAlwaysUseEndpoints,
    ...(accessKey === null || accessSecret === null ? {} : { credentials: { accessKey, accessSecret } }),
    log: (clientLevel, message) => {
      log.debug({ clientLevel }, message);
    },
  };
}
