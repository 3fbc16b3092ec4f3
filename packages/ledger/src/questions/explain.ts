/** Why an event is where it is: pure, so that every answer is a table in the test. */
import type { OutboxStatus, PublicationForm } from '@nightporter/contracts';

/** Another event of the same aggregate. */
export interface Neighbour {
  readonly version: number;
  readonly eventId: string;
  readonly status: string;
}

export interface PauseNote {
  /** `all`, or a topic. */
  readonly scope: string;
  readonly by: string;
  readonly reason: string;
  readonly at: Date;
}

export interface RelayFacts {
  readonly status: OutboxStatus;
  readonly form: PublicationForm;
  readonly retryCount: number;
  readonly nextRetryAt: Date | null;
  readonly lastError: string | null;
  readonly claimedBy: string | null;
  /** The lowest version below this one that is not published. */
  readonly unsettledBefore: Neighbour | null;
  readonly pauses: readonly PauseNote[];
  /** Relays that hold a lease now; null: the relay's database is not known. */
  readonly holders: readonly string[] | null;
}

/** How far an event is on its way to the broker, and what it waits for. */
export type RelayVerdict =
  | { readonly kind: 'published'; readonly form: PublicationForm }
  | { readonly kind: 'dead'; readonly lastError: string | null; readonly attempts: number }
  | {
      readonly kind: 'failing';
      readonly lastError: string | null;
      readonly attempts: number;
      readonly nextRetryAt: Date | null;
    }
  | { readonly kind: 'claimed'; readonly by: string | null }
  /** A lower version of its aggregate has to go first. */
  | { readonly kind: 'behind'; readonly first: Neighbour }
  | { readonly kind: 'paused'; readonly pause: PauseNote }
  /** No relay holds a lease. */
  | { readonly kind: 'no-relay' }
  /** It is its turn. */
  | { readonly kind: 'waiting'; readonly relays: readonly string[] | null };

export function explainRelay(facts: RelayFacts): RelayVerdict {
  const { claimedBy, form, holders, lastError, nextRetryAt, pauses, retryCount, status, unsettledBefore } = facts;
  if (status === 'PUBLISHED') return { kind: 'published', form };
  if (status === 'DEAD') return { kind: 'dead', lastError, attempts: retryCount };
  if (unsettledBefore !== null) return { kind: 'behind', first: unsettledBefore };
  if (status === 'FAILED') return { kind: 'failing', lastError, attempts: retryCount, nextRetryAt };
  const [pause] = pauses;
  if (pause !== undefined) return { kind: 'paused', pause };
  if (holders?.length === 0) return { kind: 'no-relay' };
  if (status === 'PROCESSING') return { kind: 'claimed', by: claimedBy };
  return { kind: 'waiting', relays: holders };
}

export interface ParkedNote {
  readonly eventId: string;
  readonly state: 'gap' | 'behind' | 'retry' | 'dead';
  readonly attempts: number;
  readonly nextRetryAt: Date | null;
  readonly failure: { readonly code: string; readonly message: string } | null;
}

export interface GroupFacts {
  readonly eventId: string;
  readonly version: number;
  /** Null: not published yet, or not known to be. */
  readonly publishedAtMs: number | null;
  readonly position: {
    readonly version: number;
    readonly startVersion: number;
    readonly state: 'open' | 'blocked';
    readonly startReason: 'unavailable' | null;
  };
  /** The group's record of this event. */
  readonly settledAs: { readonly outcome: string; readonly isEdited: boolean } | null;
  /** The event that the group has settled at this version. */
  readonly settledHere: string | null;
  readonly parkedHere: ParkedNote | null;
  /** What is parked right behind the position. */
  readonly parkedNext: ParkedNote | null;
  /** Of the group's registration; null: it is not registered for the topic any more. */
  readonly watermarkMs: number | null;
  /** False where the event was published so lately that a record of it would still be there. */
  readonly mayHaveExpired: boolean;
}

/** What a group has made of an event, and what it waits for. */
export type GroupVerdict =
  | { readonly kind: 'settled'; readonly outcome: string; readonly isEdited: boolean }
  /** Its version lies before the group's start in the aggregate; `unavailable`: retention had deleted it by then. */
  | { readonly kind: 'before-start'; readonly startVersion: number; readonly reason: 'unavailable' | null }
  /** The position is past it, and its record is not there: it has expired, or was deleted, or the event was never settled. */
  | { readonly kind: 'settled-unrecorded'; readonly position: number; readonly mayHaveExpired: boolean }
  | { readonly kind: 'dead-letter'; readonly attempts: number; readonly failure: ParkedNote['failure'] }
  | {
      readonly kind: 'retrying';
      readonly attempts: number;
      readonly nextRetryAt: Date | null;
      readonly failure: ParkedNote['failure'];
    }
  /** A lower version is parked; where `first` is null it is not known which. */
  | { readonly kind: 'behind'; readonly isReceived: boolean; readonly first: Neighbour | null }
  /** It came, and a lower version has not. */
  | { readonly kind: 'gap'; readonly missingFrom: number }
  /** Another event has its version. */
  | { readonly kind: 'conflict'; readonly other: string }
  | { readonly kind: 'not-published' }
  /** Published after what the group has compared with the ledger; a message or the next sweep brings it. */
  | { readonly kind: 'not-received' }
  /** The group's sweep has passed its publication, so it was settled or parked once, and nothing of that is left. */
  | { readonly kind: 'lost'; readonly watermarkMs: number };

export function explainGroup(facts: GroupFacts): GroupVerdict {
  const { eventId, parkedHere, position, publishedAtMs, settledAs, settledHere, version, watermarkMs } = facts;
  if (settledAs !== null) return { kind: 'settled', ...settledAs };
  if (settledHere !== null && settledHere !== eventId) return { kind: 'conflict', other: settledHere };
  if (version <= position.startVersion) {
    return { kind: 'before-start', startVersion: position.startVersion, reason: position.startReason };
  }
  if (version <= position.version) {
    return { kind: 'settled-unrecorded', position: position.version, mayHaveExpired: facts.mayHaveExpired };
  }
  if (parkedHere !== null) {
    return parkedHere.eventId === eventId
      ? explainParked(facts, parkedHere)
      : { kind: 'conflict', other: parkedHere.eventId };
  }
  if (publishedAtMs === null) return { kind: 'not-published' };
  if (position.state === 'blocked') return { kind: 'behind', isReceived: false, first: blockerOf(facts) };
  return watermarkMs !== null && publishedAtMs < watermarkMs ? { kind: 'lost', watermarkMs } : { kind: 'not-received' };
}

function explainParked(facts: GroupFacts, parked: ParkedNote): GroupVerdict {
  const { attempts, failure, nextRetryAt, state } = parked;
  switch (state) {
    case 'dead':
      return { kind: 'dead-letter', attempts, failure };
    case 'retry':
      return { kind: 'retrying', attempts, nextRetryAt, failure };
    case 'behind':
    case 'gap': {
      const first = blockerOf(facts);
      if (first !== null) return { kind: 'behind', isReceived: true, first };
      const { version } = facts.position;
      return state === 'gap' || facts.version > version + 1
        ? { kind: 'gap', missingFrom: version + 1 }
        : { kind: 'retrying', attempts, nextRetryAt, failure };
    }
  }
}

function blockerOf({ eventId, parkedNext, position }: GroupFacts): Neighbour | null {
  if (parkedNext === null || parkedNext.eventId === eventId) return null;
  return { version: position.version + 1, eventId: parkedNext.eventId, status: parkedNext.state };
}

/** Whether somebody has to do something, or it goes on by itself, or it is done. */
export function needOf(verdict: RelayVerdict | GroupVerdict): 'done' | 'waits' | 'act' {
  switch (verdict.kind) {
    case 'published':
    case 'settled':
    case 'before-start':
      return 'done';
    case 'settled-unrecorded':
      return verdict.mayHaveExpired ? 'done' : 'act';
    case 'dead':
    case 'dead-letter':
    case 'conflict':
    case 'lost':
    case 'no-relay':
    case 'paused':
      return 'act';
    case 'failing':
    case 'claimed':
    case 'waiting':
    case 'retrying':
    case 'gap':
    case 'not-published':
    case 'not-received':
      return 'waits';
    case 'behind':
      return verdict.first?.status === 'dead' || verdict.first?.status === 'DEAD' ? 'act' : 'waits';
  }
}
