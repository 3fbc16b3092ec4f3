import type { ErrorCode } from './errors.js';
import { aggregateVersion, type AggregateKey, type AggregateVersion, type EventId } from './ids.js';

/**
 * The sequencer decides what a consumer group does with one version of one aggregate, and what it writes.
 *
 * A position is `open` (the version right behind it may run) or `blocked` (that version is parked, so it and everything
 * behind it waits for it). Parking p+1 blocks. Settling v removes v's parked row; if v+1 is parked, that becomes due and
 * the position stays blocked, else it opens. Only whoever claimed the parked row of p+1 passes a blocked position.
 *
 * Every outcome that parks or settles a version also writes the position. The position is the only point where concurrent
 * transactions meet: without that write, one that parks v+1 while another settles v would leave v+1 parked for ever.
 */
export interface SequencerPosition {
  readonly version: number;
  /** Everything up to here counts as before the group's start. */
  readonly startVersion: number;
  readonly state: 'open' | 'blocked';
}

/** The position of an aggregate that has no position document. */
export const NO_POSITION: SequencerPosition = { version: 0, startVersion: 0, state: 'open' };

export type SequencerParkedState = 'gap' | 'behind' | 'retry' | 'dead';

export interface ParkedRow {
  readonly eventId: EventId;
  readonly state: SequencerParkedState;
  /** True when its envelope is not what its digest promises: whoever sent it must not hold the place of the event that was written. */
  readonly isCorrupt?: boolean;
}

/** What the group's documents say about a message. */
export interface SequencerView {
  readonly position: SequencerPosition;
  /** Where the inbox has the message's event. */
  readonly settledAs: { readonly aggregate: AggregateKey; readonly version: number } | null;
  /** The event that the inbox has at the message's version. */
  readonly settledHere: EventId | null;
  /** The row parked at the message's version. */
  readonly parkedHere: ParkedRow | null;
  /** The row parked at the version right behind it. */
  readonly parkedNext: ParkedRow | null;
  /** The group's watermark has passed the message long ago, so it was settled or parked once: where neither shows, documents were lost. */
  readonly isPassed?: boolean;
}

/** What is to be done with the content of a message once it is its turn. */
export type MessageContent =
  | { readonly kind: 'event' }
  /** The group has no handler for the type. */
  | { readonly kind: 'unhandled' }
  | { readonly kind: 'tombstone' }
  /** Not the event that was written, or one that this consumer cannot understand. */
  | { readonly kind: 'defect'; readonly code: ErrorCode; readonly reason: string };

export interface SequencedMessage {
  readonly eventId: EventId;
  readonly aggregate: AggregateKey;
  readonly version: AggregateVersion;
  readonly content: MessageContent;
  /** True when the message comes from its parked row, which this process has claimed. */
  readonly claimed: boolean;
}

export type Verdict =
  | { readonly kind: 'before-start' }
  | { readonly kind: 'duplicate' }
  /** Another event holds this version, or this event holds another version. */
  | { readonly kind: 'version-conflict'; readonly reason: string }
  /** Settled before, but the position was lost. */
  | { readonly kind: 'advance' }
  | { readonly kind: 'behind' }
  | { readonly kind: 'gap'; readonly missingFrom: AggregateVersion }
  | { readonly kind: 'dead'; readonly code: ErrorCode; readonly reason: string }
  | { readonly kind: 'apply' }
  | { readonly kind: 'ignore' }
  | { readonly kind: 'skip' };

/**
 * What becomes of a message in the end: its verdict, or, where it was its turn but its handler failed (or must not run
 * before the attempt is on record), `retry`.
 */
export type Outcome = Verdict | { readonly kind: 'retry' };

export type SequencerChange =
  | { readonly kind: 'settle'; readonly outcome: 'applied' | 'ignored' | 'skipped' }
  | { readonly kind: 'position'; readonly position: SequencerPosition }
  | { readonly kind: 'count-duplicate' }
  /** `replaces`: in the place of another message, of which nothing stays there. */
  | { readonly kind: 'park'; readonly state: SequencerParkedState; readonly replaces?: true }
  | { readonly kind: 'make-due'; readonly version: AggregateVersion }
  | { readonly kind: 'unpark' }
  | { readonly kind: 'set-aside'; readonly reason: string }
  /** The message that is parked here is kept without a sequence. */
  | { readonly kind: 'set-occupant-aside' };

/** The whole decision. The order of the tests is part of it. */
export function sequence(view: SequencerView, message: SequencedMessage): Verdict {
  const { position } = view;
  const { version } = message;
  if (version <= position.startVersion) return { kind: 'before-start' };
  const conflict = settledConflict(view, message);
  if (conflict !== null) return conflict;
  if (version <= position.version) return { kind: 'duplicate' };
  if (isReplacement(view, message)) return sequence(withoutOccupant(view, message), message);
  if (view.parkedHere !== null && view.parkedHere.eventId !== message.eventId) {
    return versionConflict(message, `event ${view.parkedHere.eventId} is parked at this version`);
  }
  const isNext = version === position.version + 1;
  if (isNext && view.settledAs !== null) return { kind: 'advance' };
  if (isLost(view, message)) return positionLost(view, message);
  if (!message.claimed && isBlocked(view, isNext)) return { kind: 'behind' };
  if (!isNext) return { kind: 'gap', missingFrom: aggregateVersion(position.version + 1) };
  return turnOf(message.content);
}

/** What an outcome writes, in order; all of it in the transaction that decided it. */
export function changesOf(
  view: SequencerView,
  message: SequencedMessage,
  outcome: Outcome,
): readonly SequencerChange[] {
  if (!isReplacement(view, message)) return changesInPlace(view, message, outcome);
  const changes = changesInPlace(withoutOccupant(view, message), message, outcome);
  // A conflict leaves everything where it is.
  if (outcome.kind === 'version-conflict') return changes;
  const replaced = changes.map((change): SequencerChange =>
    change.kind === 'park' ? { ...change, replaces: true } : change,
  );
  const isParked = replaced.some((change) => change.kind === 'park');
  return [{ kind: 'set-occupant-aside' }, ...(isParked ? [] : [{ kind: 'unpark' } as const]), ...replaced];
}

/**
 * A message that is what was written takes the place of one that is not, whichever came first: else whoever can send to the topic could
 * keep an event from the group for ever. A claim is the occupant itself.
 */
function isReplacement(
  { parkedHere, position }: SequencerView,
  { claimed, content, version }: SequencedMessage,
): boolean {
  if (claimed || parkedHere?.isCorrupt !== true || version <= position.version) return false;
  return content.kind !== 'defect' || content.code !== 'NP_DIGEST_MISMATCH';
}

/** What the message would have met if the corrupt one had never come. */
function withoutOccupant(view: SequencerView, { version }: SequencedMessage): SequencerView {
  const { position } = view;
  const isNext = version === position.version + 1;
  return { ...view, parkedHere: null, position: isNext ? { ...position, state: 'open' } : position };
}

function changesInPlace(view: SequencerView, message: SequencedMessage, outcome: Outcome): readonly SequencerChange[] {
  switch (outcome.kind) {
    case 'before-start':
      return message.claimed ? [{ kind: 'unpark' }] : [];
    case 'duplicate':
      if (message.claimed) return [{ kind: 'unpark' }];
      return view.settledAs === null ? [] : [{ kind: 'count-duplicate' }];
    case 'version-conflict': {
      const setAside: SequencerChange = { kind: 'set-aside', reason: outcome.reason };
      return message.claimed ? [setAside, ...removeClaimed(view, message)] : [setAside];
    }
    case 'advance':
      return moveOn(view, message);
    case 'behind':
      return parkBehind(view, message);
    case 'gap':
      return parkGap(view, message);
    case 'dead':
      return parkDead(view, message);
    case 'retry':
      return parkNext(view, 'retry');
    case 'apply':
      return [{ kind: 'settle', outcome: 'applied' }, ...moveOn(view, message)];
    case 'ignore':
      return [{ kind: 'settle', outcome: 'ignored' }, ...moveOn(view, message)];
    case 'skip':
      return [{ kind: 'settle', outcome: 'skipped' }, ...moveOn(view, message)];
  }
}

function settledConflict(view: SequencerView, message: SequencedMessage): Verdict | null {
  const { settledAs, settledHere } = view;
  if (settledHere !== null && settledHere !== message.eventId) {
    return versionConflict(message, `event ${settledHere} was settled at this version`);
  }
  if (settledAs !== null && (settledAs.aggregate !== message.aggregate || settledAs.version !== message.version)) {
    return versionConflict(message, `this event was settled as version ${settledAs.version} of ${settledAs.aggregate}`);
  }
  return null;
}

function versionConflict(message: SequencedMessage, found: string): Verdict {
  const reason = `Event ${message.eventId} claims version ${message.version} of ${message.aggregate}, but ${found}.`;
  return { kind: 'version-conflict', reason };
}

/**
 * The flag on the position, or the parked row that it stands for: where a position document was lost, a row of p+1 may be
 * parked behind an open position, and no message may overtake it.
 */
function isBlocked(view: SequencerView, isNext: boolean): boolean {
  return view.position.state === 'blocked' || (isNext && view.parkedHere !== null);
}

/** Parked rows are no loss: they run when an operator, or their turn, says so. */
function isLost({ isPassed, parkedHere, settledAs }: SequencerView, { claimed }: SequencedMessage): boolean {
  return isPassed === true && !claimed && parkedHere === null && settledAs === null;
}

function positionLost({ position }: SequencerView, { aggregate, eventId, version }: SequencedMessage): Verdict {
  const reason =
    `Event ${eventId}, version ${version} of ${aggregate}, was settled long ago by what the group's watermark says, but the group's ` +
    `position is ${position.version} and its inbox has forgotten the event: applying it could repeat its effect.`;
  return { kind: 'dead', code: 'NP_POSITION_LOST', reason };
}

function turnOf(content: MessageContent): Verdict {
  switch (content.kind) {
    case 'defect':
      return { kind: 'dead', code: content.code, reason: content.reason };
    case 'tombstone':
      return { kind: 'skip' };
    case 'unhandled':
      return { kind: 'ignore' };
    case 'event':
      return { kind: 'apply' };
  }
}

/** The version is settled: its parked row goes, and the row behind it gets its turn. */
function moveOn(view: SequencerView, message: SequencedMessage): readonly SequencerChange[] {
  const changes: SequencerChange[] = [];
  if (view.parkedHere !== null) changes.push({ kind: 'unpark' });
  const state = view.parkedNext === null ? 'open' : 'blocked';
  changes.push({ kind: 'position', position: { ...view.position, version: message.version, state } });
  if (view.parkedNext !== null) changes.push({ kind: 'make-due', version: aggregateVersion(message.version + 1) });
  return changes;
}

function parkNext(view: SequencerView, state: 'retry' | 'dead'): readonly SequencerChange[] {
  return [
    { kind: 'park', state },
    { kind: 'position', position: { ...view.position, state: 'blocked' } },
  ];
}

/** A lost event is dead wherever it stands: once its turn comes, it blocks. */
function parkDead(view: SequencerView, { version }: SequencedMessage): readonly SequencerChange[] {
  if (version === view.position.version + 1) return parkNext(view, 'dead');
  return [{ kind: 'park', state: 'dead' }, touch(view)];
}

function parkBehind(view: SequencerView, message: SequencedMessage): readonly SequencerChange[] {
  if (view.parkedHere === null) return [{ kind: 'park', state: 'behind' }, touch(view)];
  if (view.position.state === 'blocked') return [];
  return wakeForgotten(view, message, view.parkedHere);
}

/** The row of p+1 is parked, but its position does not say so: mend the position, and see that somebody runs the row. */
function wakeForgotten(view: SequencerView, message: SequencedMessage, row: ParkedRow): readonly SequencerChange[] {
  const block: SequencerChange = { kind: 'position', position: { ...view.position, state: 'blocked' } };
  const isWaiting = row.state === 'gap' || row.state === 'behind';
  return isWaiting ? [block, { kind: 'make-due', version: message.version }] : [block];
}

function parkGap(view: SequencerView, message: SequencedMessage): readonly SequencerChange[] {
  const state = view.position.state === 'blocked' ? 'behind' : 'gap';
  if (view.parkedHere !== null && !message.claimed) return [];
  return [{ kind: 'park', state }, touch(view)];
}

/** Writes the position as it is, so that whoever settles its next version at the same time conflicts with us. */
function touch(view: SequencerView): SequencerChange {
  return { kind: 'position', position: view.position };
}

/** A claimed row that turned out to conflict leaves its place in the sequence; at p+1 that place becomes free. */
function removeClaimed(view: SequencerView, message: SequencedMessage): readonly SequencerChange[] {
  const unpark: SequencerChange = { kind: 'unpark' };
  const { position } = view;
  if (message.version <= position.version) return [unpark];
  const isNext = message.version === position.version + 1;
  return [unpark, isNext ? { kind: 'position', position: { ...position, state: 'open' } } : touch(view)];
}
