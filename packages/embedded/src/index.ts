export { startStack, type Stack, type StackOptions } from './stack.js';
export { startMongo, type MongoOptions, type MongoServer } from './mongo/start-mongo.js';
export type { MongoEngine } from './mongo/replica-set.js';
export { startRocketMq, type RocketMqOptions, type RocketMqServer } from './rocketmq/start-rocketmq.js';
export type {
  GroupRequest,
  QueueOffsets,
  RewindRequest,
  RocketMqAdmin,
  TopicRequest,
  TopicType,
} from './rocketmq/admin.js';
export type { EmbeddedServer } from './server.js';
export type { EmbeddedOptions, Progress } from './options.js';
