import { checkHistory, type GroupHistory, type History } from '@nightporter/testing';
import { expect } from 'vitest';
import { sharedStack } from '../../support/stack.js';
import type { JournalGroup } from './journal-group.js';
import type { JournalWorld } from './journal-world.js';

/** Whatever was committed, and what the groups made of it, at rest. */
export async function historyOf(world: JournalWorld, groups: readonly JournalGroup[]): Promise<History> {
  const rows = await world.outbox.find().toArray();
  return {
    atRest: true,
    committed: rows.map(({ _id, aggregateId, aggregateVersion, digest }) => ({
      eventId: _id,
      aggregate: aggregateId,
      version: aggregateVersion,
      digest,
    })),
    unpublished: rows
      .filter(({ status }) => status !== 'PUBLISHED')
      .map(({ _id, status }) => ({ eventId: _id, status })),
    groups: await Promise.all(groups.map(groupHistory)),
  };
}

async function groupHistory({ group, journal, inbox, positions, parked }: JournalGroup): Promise<GroupHistory> {
  const [entries, settled, places, waiting] = await Promise.all([
    journal.find({}, { sort: { aggregateId: 1, sequence: 1 } }).toArray(),
    inbox.find().toArray(),
    positions.find().toArray(),
    parked.find({ sequenced: true }).toArray(),
  ]);
  const digests = new Map<string, string>(settled.map(({ eventId, digest }) => [eventId, digest]));
  return {
    group,
    startVersions: Object.fromEntries(places.map((place) => [aggregateIdOf(place), place.startVersion])),
    effects: entries.map(({ eventId }) => ({ eventId, digest: digests.get(eventId) ?? 'not in the inbox' })),
    settled: settled.map(({ eventId, outcome }) => ({ eventId, outcome })),
    parked: waiting.map(({ event, state }) => ({ eventId: event.eventId, state })),
  };
}

/** The last part of the key; the aggregates of the proofs have plain ids. */
function aggregateIdOf({ aggregate }: { readonly aggregate: string }): string {
  return aggregate.slice(aggregate.lastIndexOf('/') + 1);
}

export interface Verdict {
  readonly committed: number;
  readonly effects: number;
  readonly lost: number;
  readonly doubled: number;
  readonly misordered: number;
  readonly duplicates: number;
  /** Applied as an operator wrote them, not as their producer did. */
  readonly edited: number;
  readonly deadAtBroker: number;
}

/**
 * Every committed event took effect once, in order, as it was written; what inbox, positions and journal count is the same; and the
 * broker has given nothing of the group up, but for `givenUp` messages.
 */
export async function expectAllOnce(
  world: JournalWorld,
  group: JournalGroup,
  { givenUp = 0 }: { givenUp?: number } = {},
): Promise<Verdict> {
  const history = await historyOf(world, [group]);
  const violations = checkHistory(history);
  expect(violations.slice(0, 10)).toEqual([]);
  const settled = await group.inbox.find().toArray();
  const places = await group.positions.find().toArray();
  const effects = await group.journal.countDocuments();
  const behindStart = places.reduce((sum, { version, startVersion }) => sum + version - startVersion, 0);
  expect({ inbox: settled.length, positions: behindStart }).toEqual({ inbox: effects, positions: effects });
  expect(await group.parked.countDocuments()).toBe(0);
  const deadAtBroker = await deadLettersOfBroker(group);
  expect(deadAtBroker).toBe(givenUp);
  const count = (kind: string): number => violations.filter((violation) => violation.kind === kind).length;
  return {
    committed: history.committed.length,
    effects,
    lost: count('lost'),
    doubled: count('doubled'),
    misordered: count('out of order'),
    duplicates: settled.reduce((sum, { duplicates }) => sum + duplicates, 0),
    edited: settled.filter(({ digest, appliedDigest }) => digest !== appliedDigest).length,
    deadAtBroker,
  };
}

/** Messages in the broker's own dead-letter topic of the group, which it creates with the first one. */
export async function deadLettersOfBroker({ group }: JournalGroup): Promise<number> {
  const topic = `%DLQ%${group}`;
  try {
    const queues = await sharedStack().offsets({ topic });
    return queues.reduce((sum, { minOffset, maxOffset }) => sum + maxOffset - minOffset, 0);
  } catch (error) {
    if (String(error).includes(`no topic ${topic}`)) return 0;
    throw error;
  }
}
