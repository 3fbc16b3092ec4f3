import { MESSAGE_PROPERTIES, encodeEnvelope } from '@nightporter/contracts';
import type { GroupStores } from '@nightporter/mongo';
import {
  NO_POSITION,
  changesOf,
  sequence,
  type AggregateKey,
  type SequencedMessage,
  type SequencerChange,
  type SequencerView,
} from '@nightporter/protocol';

export type GroupTransaction = Parameters<Parameters<GroupStores['store']['transact']>[0]>[0];
type GroupState = Awaited<ReturnType<GroupTransaction['load']>>;
type GroupChange = Parameters<GroupTransaction['save']>[0][number];
type IncomingEvent = Extract<GroupChange, { readonly kind: 'settle' }>['event'];

/** `skip`, or what the event turned out to be when it was skipped: settled meanwhile, say. */
export type SkipVerdict = 'skip' | 'advance' | 'duplicate' | 'before-start' | 'version-conflict';

export type SkipDecision =
  | { readonly kind: 'write'; readonly verdict: SkipVerdict; readonly changes: readonly GroupChange[] }
  /** A lower version is not settled: this row holds nothing up by itself, and skipping it would leave a hole. */
  | { readonly kind: 'not-next'; readonly position: number };

/**
 * What skipping a dead letter writes: exactly what the sequencer writes for a tombstone in its place, run from its parked row. So the
 * version is settled as `skipped`, its row goes, the position moves on, and the next version becomes due.
 */
export function decideSkip(
  state: GroupState,
  { event, attempts }: { event: IncomingEvent; attempts: number },
): SkipDecision {
  const { aggregate, envelope } = event;
  const message: SequencedMessage = {
    eventId: envelope.eventId,
    aggregate,
    version: envelope.aggregateVersion,
    content: { kind: 'tombstone' },
    claimed: true,
  };
  const view = viewOf(state, message);
  const verdict = sequence(view, message);
  switch (verdict.kind) {
    // All but the first: settled meanwhile, or another event's place. What is left is cleared away, as for a claim that comes too late.
    case 'skip':
    case 'advance':
    case 'duplicate':
    case 'before-start':
    case 'version-conflict': {
      const changes = changesOf(view, message, verdict);
      return {
        kind: 'write',
        verdict: verdict.kind,
        changes: changes.flatMap((change) => groupChange(change, { event, attempts })),
      };
    }
    case 'gap':
    case 'behind':
    case 'dead':
    case 'apply':
    case 'ignore':
      return { kind: 'not-next', position: view.position.version };
  }
}

function viewOf(state: GroupState, { aggregate, eventId, version }: SequencedMessage): SequencerView {
  // Loaded for one event alone: what is settled here, and what is parked here and right behind.
  const [settledHere] = state.inboxByVersion.values();
  const parkedAt = (at: number) => {
    const row = [...state.parked.values()].find(({ event }) => Number(event.envelope.aggregateVersion) === at);
    return row === undefined ? null : { eventId: row.event.envelope.eventId, state: row.state };
  };
  return {
    position: positionOf(state, aggregate),
    settledAs: state.inboxByEvent.get(eventId) ?? null,
    settledHere: settledHere?.eventId ?? null,
    parkedHere: parkedAt(version),
    parkedNext: parkedAt(version + 1),
  };
}

function positionOf(state: GroupState, aggregate: AggregateKey): SequencerView['position'] {
  return state.positions.get(aggregate) ?? NO_POSITION;
}

function groupChange(
  change: SequencerChange,
  { event, attempts }: { event: IncomingEvent; attempts: number },
): readonly GroupChange[] {
  const { aggregate, envelope } = event;
  switch (change.kind) {
    case 'settle':
      // What an edit would have had applied was not.
      return [
        {
          kind: 'settle',
          event: { ...event, digest: event.writtenDigest ?? event.digest },
          outcome: change.outcome,
          attempts,
        },
      ];
    case 'position':
      return [{ kind: 'position', aggregate, position: change.position }];
    case 'make-due':
      return [{ kind: 'make-due', aggregate, version: change.version }];
    case 'unpark':
      return [{ kind: 'unpark', aggregate, version: envelope.aggregateVersion }];
    case 'set-aside':
      return [setAside(event, change.reason)];
    // Not of the verdicts above.
    case 'park':
    case 'count-duplicate':
    case 'set-occupant-aside':
      return [];
  }
}

/** Another event has its place: it leaves the sequence, and stays to be seen. */
function setAside(event: IncomingEvent, reason: string): GroupChange {
  const { envelope, topic, messageId, form, digest } = event;
  return {
    kind: 'set-aside',
    id: envelope.eventId,
    topic,
    messageId,
    body: encodeEnvelope(envelope),
    properties: { [MESSAGE_PROPERTIES.form]: form, [MESSAGE_PROPERTIES.digest]: digest },
    failure: { code: 'NP_VERSION_CONFLICT', message: reason, stack: null },
  };
}
