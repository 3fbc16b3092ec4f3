import type { BrokerProbe } from '@nightporter/ledger';
import { preflightGroup, preflightTopic } from '@nightporter/rocketmq';
import {
  brokerConnection,
  brokerEndpoints,
  rocketmqSettings,
  setting,
  type ConfigOf,
  type Logger,
  type ValueKind,
} from '@nightporter/runtime';
import { z } from 'zod';

/** The settings of relay and workers, but that the console also runs without a broker. */
export const brokerSettings = {
  ...rocketmqSettings(),
  rocketmqEndpoints: setting({
    name: 'ROCKETMQ_ENDPOINTS',
    kind: optionalEndpoints(),
    default: '',
    description:
      'RocketMQ’s gRPC proxy: where /v1/doctor looks at topics and groups. Without it they are not looked at.',
  }),
};

function optionalEndpoints(): ValueKind<string | null> {
  const { accepts, schema } = brokerEndpoints();
  return { schema: z.union([z.literal('').transform(() => null), schema]), accepts: `nothing, or ${accepts}` };
}

/** Asks the broker as relay and workers do before they start; null where none is named. @throws NP_CONFIG_INVALID for half a credential. */
export function brokerOf(config: ConfigOf<typeof brokerSettings>, logger: Logger): BrokerProbe | null {
  const { rocketmqEndpoints } = config;
  const connection = brokerConnection({ ...config, rocketmqEndpoints: rocketmqEndpoints ?? '' }, logger);
  if (rocketmqEndpoints === null) return null;
  return {
    topic: (topic) => preflightTopic({ ...connection, topic }),
    group: (reader) => preflightGroup({ ...connection, ...reader }),
  };
}
