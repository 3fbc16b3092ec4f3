/** What mends what the timeline, the audit and the doctor name, as a command or as a deed: pure. `<you>` and `<why>` are the operator's to fill in. */
import type { AggregateKey } from '@nightporter/protocol';
import type { GroupVerdict, RelayVerdict } from './explain.js';

export const SIGNED = '--by <you> --reason <why>';

/** One event in one group. */
export interface EventInGroup {
  readonly group: string;
  readonly eventId: string;
  readonly aggregate: AggregateKey;
  /** The group's own database. */
  readonly database: string;
  readonly version: number;
}

/** Null where nothing has to be mended, or where it goes on by itself. */
export function mendOfRelay(verdict: RelayVerdict, eventId: string): string | null {
  switch (verdict.kind) {
    case 'dead':
      return retryOf(eventId);
    case 'behind':
      return verdict.first.status === 'DEAD' ? retryOf(verdict.first.eventId) : timelineOf(verdict.first.eventId);
    case 'paused': {
      const { scope } = verdict.pause;
      return `nightporter relay resume${scope === 'all' ? '' : ` --topic ${scope}`} ${SIGNED}`;
    }
    case 'no-relay':
      return 'Start a relay: node services/relay/dist/main.js, or its container';
    case 'published':
    case 'failing':
    case 'claimed':
    case 'waiting':
      return null;
  }
}

/** Null where nothing has to be mended. */
export function mendOfGroup(verdict: GroupVerdict, place: EventInGroup): string | null {
  switch (verdict.kind) {
    case 'dead-letter':
      return deadRetryOf(place.group, place.eventId);
    case 'behind':
      if (verdict.first === null) return timelineOf(place.eventId);
      return verdict.first.status === 'dead'
        ? deadRetryOf(place.group, verdict.first.eventId)
        : timelineOf(verdict.first.eventId);
    case 'gap':
    case 'lost':
    case 'not-received':
      return replayOf(place);
    case 'settled-unrecorded':
      return mendOfRecord(place);
    case 'conflict':
      return timelineOf(verdict.other);
    case 'retrying':
      return timelineOf(place.eventId);
    case 'settled':
    case 'before-start':
    case 'not-published':
      return null;
  }
}

/** Parks what the group is missing of the aggregate, and moves a position on that is behind its inbox. */
export function replayOf({ aggregate, group }: Pick<EventInGroup, 'aggregate' | 'group'>): string {
  return `nightporter replay ${group} --aggregates ${aggregate} ${SIGNED}`;
}

export function timelineOf(eventId: string): string {
  return `nightporter timeline ${eventId}`;
}

export function retryOf(eventId: string): string {
  return `nightporter outbox retry ${eventId} ${SIGNED}`;
}

export function deadRetryOf(group: string, eventId: string): string {
  return `nightporter dead retry ${group} ${eventId} ${SIGNED}`;
}

/** Nobody but a person can tell whether the effect is there, and so whether the event may run. */
function mendOfRecord(place: EventInGroup): string {
  const { aggregate, database, group, version } = place;
  const filter = `{ _id: ${JSON.stringify(`${group}|${aggregate}`)} }`;
  const back = `db.getSiblingDB(${JSON.stringify(database)}).positions.updateOne(${filter}, { $set: { version: ${version - 1} } })`;
  return `Where its effect is there: restore its record from a backup. Where it is not: ${back} in mongosh, then ${replayOf(place)}`;
}
