export { createConsumer, type Consumer } from './consumer.js';
export type { ConsumerPorts } from './engine.js';
export * from './ledger-ports.js';
export { CONSUMER_DEFAULTS, type ConsumerOptions, type ConsumerSetup, type ReadResult } from './options.js';
export type { ConsumerSnapshot } from './snapshot.js';
export * from './ports.js';
