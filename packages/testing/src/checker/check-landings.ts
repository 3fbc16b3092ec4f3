import type { History, LandingRecord, Violation } from './history.js';
import { placeOf, type Ledger } from './ledger.js';

/** At the broker: the first landing of v needs that of v−1, nothing lands that was not committed, and nothing is missing. */
export function checkLandings(
  landings: readonly LandingRecord[],
  history: History,
  ledger: Ledger,
): readonly Violation[] {
  const landed = new Set<string>();
  const violations = landings.flatMap((landing) => checkLanding(landing, landed, ledger));
  if (!history.atRest) return violations;
  const unpublished = new Set(history.unpublished.map(({ eventId }) => eventId));
  for (const { eventId, aggregate, version } of history.committed) {
    if (landed.has(eventId) || unpublished.has(eventId)) continue;
    const detail = `${placeOf(aggregate, version)} never reached the broker, and the outbox does not show it as unpublished`;
    violations.push({ kind: 'lost', eventId, detail });
  }
  return violations;
}

function checkLanding(landing: LandingRecord, landed: Set<string>, ledger: Ledger): readonly Violation[] {
  const { eventId } = landing;
  const event = ledger.byId.get(eventId);
  if (event === undefined) return [{ kind: 'phantom', eventId, detail: 'landed, but its transaction did not commit' }];
  const violations: Violation[] = [];
  const place = placeOf(event.aggregate, event.version);
  if (isAltered(landing, event.digest)) {
    violations.push({
      kind: 'altered',
      eventId,
      detail: `${place} landed with another digest than it was written with`,
    });
  }
  const predecessor = ledger.predecessorOf(event);
  if (!landed.has(eventId) && predecessor !== undefined && !landed.has(predecessor.eventId)) {
    violations.push({ kind: 'out of order', eventId, detail: `${place} landed before version ${event.version - 1}` });
  }
  landed.add(eventId);
  return violations;
}

/** A tombstone has a digest of its own. */
function isAltered(landing: LandingRecord, written: string | undefined): boolean {
  if (landing.form === 'tombstone' || landing.digest === undefined || written === undefined) return false;
  return landing.digest !== written;
}
