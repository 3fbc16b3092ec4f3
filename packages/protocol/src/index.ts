export {
  ARCHIVE_LOCATION_ACCEPTS,
  PARTIAL_SUFFIX,
  archiveLocation,
  assertArchiveName,
  type ArchiveFiles,
  type ArchiveLocation,
} from './archive-files.js';
export { backoffMs, type Backoff } from './backoff.js';
export { CheckpointTracker, type Delivery } from './checkpoint-tracker.js';
export { Wakeup, sleep, type Clock, type Random } from './clock.js';
export { ERROR_CODES, NightporterError, isNightporterError, type ErrorCode } from './errors.js';
export {
  aggregateIdentity,
  aggregateKey,
  aggregateVersion,
  brokerGroup,
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
export { fairShare, shareStep, type ShareStep, type Sharing } from './fair-share.js';
export { Fifo } from './fifo.js';
export { laneKeyOf, type Lane, type LaneItem, type LaneRow } from './lane.js';
export type { Sighting } from './lane-offer.js';
export { notShown, type LaneReading, type LaneTruth } from './lane-refresh.js';
export { leaseDeadline, renewEveryMs } from './lease-timing.js';
export type { FailureVerdict, SendFailure } from './publish-failure.js';
export type { LanePolicy } from './lane-policy.js';
export { PublishLanes, type MarkResult } from './publish-lanes.js';
export { ALL_SLOTS, SLOT_COUNT, slotOf, slotsOfShard } from './slots.js';
export { NOTHING_PAUSED, samePause, type Pause } from './pause.js';
export { isTraceparent, partsOfTraceparent, traceIdOf, type TraceContext } from './trace-context.js';
export { TokenBucket, steadyRate, type RateLimit } from './token-bucket.js';
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
