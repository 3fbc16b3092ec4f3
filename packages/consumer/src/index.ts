export { createConsumer, type Consumer, type ConsumerPorts } from './consumer.js';
export { CONSUMER_DEFAULTS, type ConsumerOptions, type ConsumerSetup, type ReadResult } from './options.js';
export type { ConsumerSnapshot } from './snapshot.js';
export * from './ports.js';
