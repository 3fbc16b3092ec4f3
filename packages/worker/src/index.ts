export { type Companion, type CompanionLimits } from './companion.js';
export {
  defineConsumer,
  type ConsumerDefinition,
  type WorkerFilter,
  type WorkerParts,
  type WorkerResources,
  type WorkerTuning,
} from './define-consumer.js';
export { type ContextOf, type EmitOf, type EmittedEvent, type EventOf, type HandlersOf } from './handlers.js';
export { CONSUMER_METRICS } from './metrics-table.js';
export { type Subscription, type WorkerSettings } from './settings.js';
