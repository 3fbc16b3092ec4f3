import type { GroupStores } from '@nightporter/mongo';
import {
  NO_POSITION,
  aggregateVersion,
  changesOf,
  sequence,
  type AggregateKey,
  type EventId,
  type Outcome,
  type ParkedRow,
  type SequencedMessage,
  type SequencerChange,
  type SequencerPosition,
  type SequencerView,
  type Verdict,
} from '@nightporter/protocol';
import { digestOf } from '@nightporter/contracts';

export type GroupTransaction = Parameters<Parameters<GroupStores['store']['transact']>[0]>[0];
export type GroupState = Awaited<ReturnType<GroupTransaction['load']>>;
export type GroupChange = Parameters<GroupTransaction['save']>[0][number];
export type IncomingEvent = Extract<GroupChange, { readonly kind: 'settle' }>['event'];

/** One event of the ledger on its way into `parked`. */
export interface Replayed {
  readonly event: IncomingEvent;
  readonly isSelected: boolean;
  /** The group's watermark has passed it long ago. */
  readonly isPassed: boolean;
}

export interface Parked {
  readonly changes: readonly GroupChange[];
  readonly parked: number;
  readonly skipped: number;
  readonly known: number;
  readonly conflicts: number;
}

/** A version that is settled without an effect: the event without its data, as the relay sends it for one that an operator has skipped. */
export function withoutData(event: IncomingEvent): IncomingEvent {
  const envelope = { ...event.envelope, data: null };
  return { ...event, envelope, form: 'tombstone', digest: digestOf(envelope) };
}

/**
 * How events of one aggregate, in the order of their versions, are parked in a group: what the sequencer says of each, but that nothing
 * runs here. The one whose turn it is becomes due in `dueInMs`.
 */
export function decideParking(
  state: GroupState,
  aggregate: AggregateKey,
  { events, dueInMs }: { events: readonly Replayed[]; dueInMs: number },
): Parked {
  let position: SequencerPosition = state.positions.get(aggregate) ?? NO_POSITION;
  const rows = new Map<number, ParkedRow>();
  for (const { event, state: parkedState } of state.parked.values()) {
    const { aggregateVersion: version, eventId } = event.envelope;
    if (event.aggregate === aggregate) rows.set(version, { eventId, state: parkedState });
  }
  const changes: GroupChange[] = [];
  const counts = { parked: 0, skipped: 0, known: 0, conflicts: 0 };
  for (const replayed of events) {
    const message = messageOf(aggregate, replayed);
    const view = viewOf(state, message, { position, rows, isPassed: replayed.isPassed });
    const verdict = sequence(view, message);
    const outcome = outcomeOf(verdict);
    const decided = outcome === null ? [] : changesOf(view, message, outcome);
    const isParked = decided.some((change) => change.kind === 'park');
    if (isParked) counts[replayed.isSelected ? 'parked' : 'skipped'] += 1;
    else counts[verdict.kind === 'version-conflict' ? 'conflicts' : 'known'] += 1;
    for (const change of decided) {
      if (change.kind === 'position') position = change.position;
      if (change.kind === 'park') rows.set(message.version, { eventId: message.eventId, state: change.state });
      changes.push(...groupChange(change, { event: replayed.event, verdict, dueInMs }));
    }
  }
  return { changes, ...counts };
}

function messageOf(aggregate: AggregateKey, { event }: Replayed): SequencedMessage {
  const { aggregateVersion: version, eventId } = event.envelope;
  // Whoever claims it reads it again, and knows its handlers.
  return { eventId, aggregate, version: aggregateVersion(version), content: { kind: 'event' }, claimed: false };
}

function viewOf(
  state: GroupState,
  { aggregate, eventId, version }: SequencedMessage,
  around: { position: SequencerPosition; rows: ReadonlyMap<number, ParkedRow>; isPassed: boolean },
): SequencerView {
  const here = [...state.inboxByVersion.values()].find(
    (record) => record.aggregate === aggregate && record.version === version,
  );
  const settledHere: EventId | null = here?.eventId ?? null;
  return {
    position: around.position,
    settledAs: state.inboxByEvent.get(eventId) ?? null,
    settledHere,
    parkedHere: around.rows.get(version) ?? null,
    parkedNext: around.rows.get(version + 1) ?? null,
    isPassed: around.isPassed,
  };
}

/** As the group's sweep decides; null where nothing is written. */
function outcomeOf(verdict: Verdict): Outcome | null {
  switch (verdict.kind) {
    case 'apply':
    case 'ignore':
    case 'skip':
      return { kind: 'retry' };
    case 'advance':
    case 'behind':
    case 'gap':
    case 'dead':
      return verdict;
    case 'before-start':
    case 'duplicate':
    case 'version-conflict':
      return null;
  }
}

function groupChange(
  change: SequencerChange,
  { event, verdict, dueInMs }: { event: IncomingEvent; verdict: Verdict; dueInMs: number },
): readonly GroupChange[] {
  const { aggregate } = event;
  switch (change.kind) {
    case 'position':
      return [{ kind: 'position', aggregate, position: change.position }];
    case 'park': {
      const failure = verdict.kind === 'dead' ? { code: verdict.code, message: verdict.reason, stack: null } : null;
      const retryInMs = change.state === 'retry' ? dueInMs : null;
      return [{ kind: 'park', event, state: change.state, attempts: 0, retryInMs, failure }];
    }
    case 'make-due':
      return [{ kind: 'make-due', aggregate, version: change.version }];
    case 'unpark':
      return [{ kind: 'unpark', aggregate, version: event.envelope.aggregateVersion }];
    // Not of the outcomes above.
    case 'settle':
    case 'count-duplicate':
    case 'set-aside':
    case 'set-occupant-aside':
      return [];
  }
}
