export { Wakeup, sleep, type Clock, type Random } from './clock.js';
export { ERROR_CODES, NightporterError, isNightporterError, type ErrorCode } from './errors.js';
export {
  aggregateIdentity,
  aggregateKey,
  aggregateVersion,
  epoch,
  eventId,
  groupId,
  namespace,
  resumeToken,
  slot,
  type AggregateIdentity,
  type AggregateKey,
  type AggregateVersion,
  type Epoch,
  type EventId,
  type GroupId,
  type Namespace,
  type ResumeToken,
  type Slot,
} from './ids.js';
export { ALL_SLOTS, SLOT_COUNT, slotOf } from './slots.js';
export {
  decideRetry,
  retryDelayMs,
  type ExponentialDelays,
  type RetryDecision,
  type RetryDelays,
  type RetryPolicy,
  type ScheduledDelays,
} from './retry-policy.js';
export {
  NO_POSITION,
  changesOf,
  sequence,
  type MessageContent,
  type Outcome,
  type ParkedRow,
  type SequencedMessage,
  type SequencerChange,
  type SequencerParkedState,
  type SequencerPosition,
  type SequencerView,
  type Verdict,
} from './sequencer.js';
