export { checkHistory } from './check-history.js';
export type {
  CommittedRecord,
  EffectRecord,
  GroupHistory,
  History,
  LandingRecord,
  ParkedRecord,
  SettledRecord,
  UnpublishedRecord,
  Violation,
  ViolationKind,
} from './history.js';
