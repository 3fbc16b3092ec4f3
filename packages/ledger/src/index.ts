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
export type { Decision } from './requests.js';
