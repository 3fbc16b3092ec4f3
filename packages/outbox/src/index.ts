export {
  createOutbox,
  type CausedEmit,
  type EmitRequest,
  type EmittedEvent,
  type Outbox,
  type OutboxOptions,
  type TransactionOptions,
  type TransactionScope,
  type TransactionTracer,
} from './outbox.js';
export type { OutboxWorld } from './world.js';
