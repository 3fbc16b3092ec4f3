export { groupCommand, topicCommand, type GroupCommand, type TopicCommand } from './admin-commands.js';
export {
  createDeadLetterSender,
  deadLetterTopic,
  type DeadLetterSenderOptions,
  type RocketmqDeadLetterSender,
} from './dead-letter-sender.js';
export { messageGroupOf } from './message.js';
export { worstSendMs } from './options.js';
export type { AdminOptions, ClientLog, ClientLogLevel, ConnectionOptions, Credentials } from './options.js';
export {
  preflightGroup,
  preflightTopic,
  type GroupFacts,
  type GroupPreflight,
  type TopicFacts,
  type TopicPreflight,
} from './preflight.js';
export { createPublisher, type PublisherOptions, type RocketmqPublisher } from './publisher.js';
export {
  createDeadLetterSubscriber,
  createSubscriber,
  type RocketmqSubscriber,
  type SubscriberOptions,
} from './subscriber.js';
