import { startRocketMq, type RocketMqAdmin, type RocketMqOptions, type RocketMqServer } from '@nightporter/embedded';
import { sharedStack } from '../../support/stack.js';

/** A MongoDB and a RocketMQ, whoever else uses them. */
export interface ProofServers extends Pick<RocketMqAdmin, 'createTopic' | 'createGroup' | 'offsets'> {
  readonly mongodbUri: string;
  readonly rocketmqEndpoints: string;
}

/** A RocketMQ for one proof to treat badly, whatever ROCKETMQ_ENDPOINTS says, beside the database that all share. */
export async function startOwnRocketMq(
  options: RocketMqOptions = {},
): Promise<{ readonly rocketmq: RocketMqServer; readonly servers: ProofServers }> {
  const rocketmq = await startRocketMq({ ...options, environment: { ...process.env, ROCKETMQ_ENDPOINTS: '' } });
  return {
    rocketmq,
    servers: {
      mongodbUri: sharedStack().mongodbUri,
      rocketmqEndpoints: rocketmq.endpoints,
      createTopic: (topic) => rocketmq.createTopic(topic),
      createGroup: (group) => rocketmq.createGroup(group),
      offsets: (request) => rocketmq.offsets(request),
    },
  };
}
