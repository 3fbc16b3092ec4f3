/** What the audit makes of one published row in one group: pure. */
import type { PublicationForm } from '@nightporter/contracts';
import { explainGroup, type GroupFacts, type GroupVerdict } from '../questions/explain.js';
import { mendOfGroup, replayOf, type EventInGroup } from '../questions/mending.js';
import type { DifferenceKind } from './contract.js';

export interface RowFacts extends Omit<GroupFacts, 'mayHaveExpired'> {
  readonly publishedAtMs: number;
  /** Of what was published: the original, or the tombstone in its place. */
  readonly digest: string;
  /** Of the event as it was written. */
  readonly originalDigest: string;
  readonly form: PublicationForm;
  /** Whether the original may have reached the broker although a tombstone was published. */
  readonly unanswered: boolean;
  /** What the inbox says it settled. */
  readonly settledDigest: string | null;
}

export interface Rule {
  readonly nowMs: number;
  readonly graceMs: number;
  readonly inboxRetentionMs: number;
}

export type RowVerdict =
  | { readonly kind: 'settled' | 'before-start' | 'expired' | 'in-flight' }
  | {
      readonly kind: 'different';
      readonly difference: DifferenceKind;
      readonly because: string;
      /** What mends it, for the group that was judged. */
      readonly mendIn: (place: EventInGroup) => string | null;
    };

export function judgeRow(facts: RowFacts, rule: Rule): RowVerdict {
  // A record lives longer than that after the event was published, since it was settled later.
  const mayHaveExpired = facts.publishedAtMs < rule.nowMs - rule.inboxRetentionMs;
  const verdict = explainGroup({ ...facts, mayHaveExpired });
  const different = differentBy((place) => mendOfGroup(verdict, place));
  switch (verdict.kind) {
    case 'settled':
      return judgeSettled(facts, verdict);
    case 'before-start':
      return { kind: 'before-start' };
    case 'settled-unrecorded':
      return verdict.mayHaveExpired
        ? { kind: 'expired' }
        : different(
            'missing',
            `its position is ${verdict.position}, and its record of the event is gone, long before it expires`,
          );
    case 'conflict':
      return different('conflict', `it has event ${verdict.other} at this version`);
    case 'dead-letter':
      return different('dead-letter', `it gave it up after ${verdict.attempts} attempts: ${reasonOf(verdict.failure)}`);
    case 'retrying':
    case 'behind':
    case 'gap':
      return isYoung(facts, rule) ? { kind: 'in-flight' } : different('unsettled', waitingFor(verdict));
    case 'not-received':
    case 'not-published':
      return isYoung(facts, rule)
        ? { kind: 'in-flight' }
        : different(
            'missing',
            'it has neither settled nor parked it, and has not compared its publication with the ledger yet',
          );
    case 'lost':
      return different(
        'missing',
        'it has neither settled nor parked it, although its sweep has passed the publication',
      );
  }
}

function judgeSettled(facts: RowFacts, { outcome }: { readonly outcome: string }): RowVerdict {
  const { digest, form, originalDigest, settledDigest, unanswered, position, version } = facts;
  // Where the original was on its way when it was skipped, a group may have had that, and nothing else.
  const mayBeOriginal = form === 'tombstone' && unanswered;
  const different = differentBy(() => null);
  if (settledDigest !== digest && !(mayBeOriginal && settledDigest === originalDigest)) {
    return different('altered', `it settled an event of digest ${String(settledDigest)}, and ${digest} was published`);
  }
  if (form === 'tombstone' && outcome !== 'skipped' && !mayBeOriginal) {
    return different('outcome', `a tombstone was published, and it has ${outcome} the event`);
  }
  if (position.version < version) {
    return differentBy(replayOf)(
      'position-behind',
      `it has settled version ${version}, and its position is ${position.version}`,
    );
  }
  return { kind: 'settled' };
}

function isYoung({ publishedAtMs }: RowFacts, { graceMs, nowMs }: Rule): boolean {
  return publishedAtMs > nowMs - graceMs;
}

function waitingFor(verdict: Extract<GroupVerdict, { kind: 'retrying' | 'behind' | 'gap' }>): string {
  switch (verdict.kind) {
    case 'retrying':
      return `it is parked after ${verdict.attempts} attempts: ${reasonOf(verdict.failure)}`;
    case 'behind':
      return verdict.first === null
        ? 'it waits for a lower version'
        : `it waits for version ${verdict.first.version}, event ${verdict.first.eventId} (${verdict.first.status})`;
    case 'gap':
      return `version ${verdict.missingFrom} has not come`;
  }
}

function reasonOf(failure: { readonly code: string; readonly message: string } | null): string {
  return failure === null ? 'no reason is kept' : `${failure.code}: ${failure.message}`;
}

function differentBy(mendIn: (place: EventInGroup) => string | null) {
  return (difference: DifferenceKind, because: string): RowVerdict => ({
    kind: 'different',
    difference,
    because,
    mendIn,
  });
}
