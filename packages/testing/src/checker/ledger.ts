import type { CommittedRecord, UnpublishedRecord, Violation } from './history.js';

/** The committed events, found by id and by place. */
export class Ledger {
  readonly byId: ReadonlyMap<string, CommittedRecord>;
  readonly #byPlace = new Map<string, CommittedRecord>();

  constructor(committed: readonly CommittedRecord[]) {
    this.byId = new Map(committed.map((event) => [event.eventId, event]));
    for (const event of committed) this.#byPlace.set(placeOf(event.aggregate, event.version), event);
  }

  /** The event right before this one in its aggregate. */
  predecessorOf(event: CommittedRecord): CommittedRecord | undefined {
    return this.#byPlace.get(placeOf(event.aggregate, event.version - 1));
  }
}

export function placeOf(aggregate: string, version: number): string {
  return `${aggregate}#${version}`;
}

/** The lowest version of each aggregate among these events. */
export function lowestVersions(events: Iterable<CommittedRecord>): ReadonlyMap<string, number> {
  const lowest = new Map<string, number>();
  for (const { aggregate, version } of events) {
    lowest.set(aggregate, Math.min(version, lowest.get(aggregate) ?? Number.POSITIVE_INFINITY));
  }
  return lowest;
}

/** Versions are 1, 2, 3 … per aggregate, without a hole and without a repeat. */
export function checkCommitted(committed: readonly CommittedRecord[]): readonly Violation[] {
  const violations: Violation[] = [];
  const seen = new Set<string>();
  for (const { eventId, aggregate, version } of committed) {
    const place = placeOf(aggregate, version);
    if (seen.has(place)) violations.push({ kind: 'doubled', eventId, detail: `${place} was given to two events` });
    seen.add(place);
  }
  for (const { eventId, aggregate, version } of committed) {
    if (version === 1 || seen.has(placeOf(aggregate, version - 1))) continue;
    const detail = `${placeOf(aggregate, version)} was committed, but no event has the version before it`;
    violations.push({ kind: 'lost', eventId, detail });
  }
  return violations;
}

/** At rest, whatever is unpublished is DEAD, or behind a DEAD row of its aggregate. */
export function checkUnpublished(unpublished: readonly UnpublishedRecord[], ledger: Ledger): readonly Violation[] {
  const violations: Violation[] = [];
  const known = unpublished.flatMap(({ eventId, status }) => {
    const event = ledger.byId.get(eventId);
    if (event !== undefined) return [{ event, status }];
    violations.push({ kind: 'phantom', eventId, detail: 'is in the outbox, but its transaction did not commit' });
    return [];
  });
  const deadFrom = lowestVersions(known.filter(({ status }) => status === 'DEAD').map(({ event }) => event));
  for (const { event, status } of known) {
    const dead = deadFrom.get(event.aggregate) ?? Number.POSITIVE_INFINITY;
    if (event.version >= dead) continue;
    const detail = `${placeOf(event.aggregate, event.version)} is ${status} at rest, with no DEAD row before it`;
    violations.push({ kind: 'stuck', eventId: event.eventId, detail });
  }
  return violations;
}
