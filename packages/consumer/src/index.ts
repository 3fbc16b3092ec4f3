export { createConsumer, type Consumer } from './consumer.js';
export * from './copy-ports.js';
export type { ConsumerPorts } from './engine.js';
export type { DuplicateFilter, DuplicatePorts, RepeatedEvents } from './filter-ports.js';
export * from './ledger-ports.js';
export { createMemoryFilter } from './memory-filter.js';
export { CONSUMER_DEFAULTS, type ConsumerOptions, type ConsumerSetup, type ReadResult } from './options.js';
export type { ConsumerSnapshot } from './snapshot.js';
export * from './ports.js';
