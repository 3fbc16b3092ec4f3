export { audit } from './audit/audit.js';
export type { AuditReport, AuditRequest, Difference, GroupAudit } from './audit/contract.js';
export type {
  ActionResult,
  BulkResult,
  DeadLetterFilter,
  DeadLetters,
  DeadLettersOptions,
  DismissResult,
  SkipResult,
  Target,
} from './contract.js';
export { createDeadLetters } from './dead-letters.js';
export type { DeadLetter, SetAsideMessage, StoredMessage } from './documents.js';
export { removeGroup, type DataCollection, type GroupRemoval, type GroupRemovalResult } from './group-removal.js';
export type {
  Into,
  Replay,
  ReplayOptions,
  ReplayPlan,
  ReplayProducer,
  ReplayRequest,
  ReplayResult,
  Selected,
  Selection,
} from './replay/contract.js';
export { replayOfGroup } from './replay/of-group.js';
export { createReplay } from './replay/replay.js';
export type { Decision } from './requests.js';
export type {
  Destination,
  DroppedArchive,
  Retention,
  RetentionOptions,
  RetentionProgress,
  RetentionRequest,
  RetentionResult,
} from './retention/contract.js';
export type { Held } from './retention/policy.js';
export { createRetention } from './retention/retention.js';
export type { EventSummary, GroupTimeline, Step, Timeline } from './questions/contract.js';
export {
  discoverDeployment,
  placeOfGroup,
  type Deployment,
  type GroupPlace,
  type Place,
  type ProducerPlace,
} from './questions/deployment.js';
export { needOf, type GroupVerdict, type RelayVerdict } from './questions/explain.js';
export { GROUP_HOMES_ACCEPTED, parseGroupHomes, type GroupHome } from './questions/group-homes.js';
export { followEvents, type EventFollower, type FollowedEvents } from './questions/follow.js';
export { aggregateHistory, type AggregateHistory, type HistoryPage } from './questions/history.js';
export { SEARCH_LIMIT_MAX, search, type SearchPage, type SearchRequest } from './questions/search.js';
export {
  groupStandings,
  relayStanding,
  status,
  type GroupStandingRow,
  type RelayStanding,
  type Status,
} from './questions/status.js';
export { timeline } from './questions/timeline.js';
export {
  actOnOutbox,
  listOutbox,
  type OutboxAct,
  type OutboxEntry,
  type UnpublishedStatus,
} from './questions/outbox.js';
export { operatorActions, type ActionRecord } from './questions/records.js';
export { brokerNotAsked, examineBroker, type BrokerProbe } from './doctor/broker.js';
export { doctor, type Examination } from './doctor/doctor.js';
export type { Finding } from './doctor/finding.js';
export { type SloVerdict, type SloWindow } from './slo/judge.js';
export {
  serviceLevel,
  type GroupServiceLevel,
  type ServiceLevel,
  type ServiceLevelRequest,
} from './slo/service-level.js';
