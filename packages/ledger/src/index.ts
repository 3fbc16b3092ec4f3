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
