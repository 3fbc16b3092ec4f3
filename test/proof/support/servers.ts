import type { RocketMqAdmin } from '@nightporter/embedded';

/** A MongoDB and a RocketMQ, whoever else uses them. */
export interface ProofServers extends Pick<RocketMqAdmin, 'createTopic' | 'createGroup' | 'offsets'> {
  readonly mongodbUri: string;
  readonly rocketmqEndpoints: string;
}
