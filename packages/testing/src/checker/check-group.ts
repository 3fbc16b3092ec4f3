import type { CommittedRecord, GroupHistory, History, Violation, ViolationKind } from './history.js';
import { lowestVersions, placeOf, type Ledger } from './ledger.js';

/** Of one group: every effect once, in order, of what was written; and at rest nothing lost and nothing stuck. */
export function checkGroup(group: GroupHistory, history: History, ledger: Ledger): readonly Violation[] {
  const checks = [
    ...checkKnown(group, ledger),
    ...checkEffects(group, ledger),
    ...checkOutcomes(group),
    ...checkSequence(group, ledger),
  ];
  if (history.atRest) checks.push(...checkLost(group, history, ledger), ...checkStuck(group, history, ledger));
  return checks.map((violation) => ({ ...violation, group: group.group }));
}

/** Nothing is settled or parked that was never committed. */
function checkKnown(group: GroupHistory, ledger: Ledger): readonly Violation[] {
  const phantoms = [...group.settled, ...group.parked].filter(({ eventId }) => !ledger.byId.has(eventId));
  return phantoms.map(({ eventId }) => violation('phantom', eventId, 'is settled or parked, but was never committed'));
}

function checkEffects(group: GroupHistory, ledger: Ledger): readonly Violation[] {
  const violations: Violation[] = [];
  const seen = new Set<string>();
  const highest = new Map<string, number>();
  for (const { eventId, digest } of group.effects) {
    const event = ledger.byId.get(eventId);
    if (event === undefined) {
      violations.push(violation('phantom', eventId, 'took effect, but was never committed'));
      continue;
    }
    const place = placeOf(event.aggregate, event.version);
    if (digest !== undefined && event.digest !== undefined && digest !== event.digest) {
      violations.push(
        violation('altered', eventId, `${place} took effect with another digest than it was written with`),
      );
    }
    const before = highest.get(event.aggregate) ?? 0;
    if (seen.has(eventId)) violations.push(violation('doubled', eventId, `${place} took effect more than once`));
    else if (event.version < before) {
      violations.push(violation('out of order', eventId, `${place} took effect after version ${before}`));
    }
    seen.add(eventId);
    highest.set(event.aggregate, Math.max(before, event.version));
  }
  return violations;
}

/** Effect and outcome are one transaction: `applied` has one, nothing else has. */
function checkOutcomes(group: GroupHistory): readonly Violation[] {
  const violations: Violation[] = [];
  const effects = new Set(group.effects.map(({ eventId }) => eventId));
  const outcomes = new Map<string, string>();
  for (const { eventId, outcome } of group.settled) {
    const before = outcomes.get(eventId);
    if (before !== undefined)
      violations.push(violation('doubled', eventId, `was settled as ${before}, then ${outcome}`));
    outcomes.set(eventId, outcome);
    if (outcome === 'applied' && !effects.has(eventId)) {
      violations.push(violation('lost', eventId, 'counts as applied, but took no effect'));
    }
  }
  for (const eventId of effects) {
    if (outcomes.get(eventId) === 'applied') continue;
    const outcome = outcomes.get(eventId) ?? 'not settled';
    violations.push(violation('phantom', eventId, `took effect, but is ${outcome}`));
  }
  return violations;
}

/** A version is settled only once its predecessor is. */
function checkSequence(group: GroupHistory, ledger: Ledger): readonly Violation[] {
  const settled = new Set(group.settled.map(({ eventId }) => eventId));
  const violations: Violation[] = [];
  for (const eventId of settled) {
    const event = ledger.byId.get(eventId);
    const predecessor = event === undefined ? undefined : ledger.predecessorOf(event);
    if (event === undefined || predecessor === undefined) continue;
    if (settled.has(predecessor.eventId) || predecessor.version <= startOf(group, predecessor)) continue;
    const detail = `${placeOf(event.aggregate, event.version)} is settled, but version ${predecessor.version} is not`;
    violations.push(violation('out of order', eventId, detail));
  }
  return violations;
}

/** Every event of the group's topics is settled, parked, or visibly unpublished. */
function checkLost(group: GroupHistory, history: History, ledger: Ledger): readonly Violation[] {
  const accounted = new Set([...group.settled, ...group.parked, ...history.unpublished].map(({ eventId }) => eventId));
  const missing = [...ledger.byId.values()].filter(
    (event) => isOfGroup(group, event) && event.version > startOf(group, event) && !accounted.has(event.eventId),
  );
  return missing.map(({ eventId, aggregate, version }) =>
    violation('lost', eventId, `${placeOf(aggregate, version)} is neither settled nor parked nor unpublished`),
  );
}

/**
 * What is parked at rest is dead, or behind a dead one; and nothing settled is still parked. A copy of an event that is not published, which
 * somebody else has sent, waits like the event itself for what is DEAD in the relay.
 */
function checkStuck(group: GroupHistory, history: History, ledger: Ledger): readonly Violation[] {
  const settled = new Set(group.settled.map(({ eventId }) => eventId));
  const unpublished = new Set(history.unpublished.map(({ eventId }) => eventId));
  const parked = group.parked.flatMap(({ eventId, state }) => {
    const event = ledger.byId.get(eventId);
    return event === undefined ? [] : [{ event, state }];
  });
  const deadFrom = lowestVersions(parked.filter(({ state }) => state === 'dead').map(({ event }) => event));
  return parked.flatMap(({ event, state }) => {
    const place = placeOf(event.aggregate, event.version);
    if (settled.has(event.eventId)) return [violation('stuck', event.eventId, `${place} is settled and still parked`)];
    if (unpublished.has(event.eventId)) return [];
    if (event.version >= (deadFrom.get(event.aggregate) ?? Number.POSITIVE_INFINITY)) return [];
    return [violation('stuck', event.eventId, `${place} is parked (${state}) at rest, with no dead letter before it`)];
  });
}

function isOfGroup(group: GroupHistory, event: CommittedRecord): boolean {
  return group.topics === undefined || event.topic === undefined || group.topics.includes(event.topic);
}

function startOf(group: GroupHistory, event: CommittedRecord): number {
  return group.startVersions?.[event.aggregate] ?? 0;
}

function violation(kind: ViolationKind, eventId: string, detail: string): Violation {
  return { kind, eventId, detail };
}
