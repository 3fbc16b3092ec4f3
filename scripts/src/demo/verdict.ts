/**
 * Compares what the API promised with what the databases hold. Pure: the demo reads the evidence, this judges it, and its own tests
 * show it evidence of every kind of fault.
 */
import { digestOf, envelopeOf, type OutboxDocument } from '@nightporter/contracts';
import { aggregateKey } from '@nightporter/protocol';
import { checkHistory, type GroupHistory, type Violation } from '@nightporter/testing';
import { checkAcknowledged, checkOrders } from './check-orders.js';
import { checkStock } from './check-stock.js';
import type { Evidence, GroupEvidence } from './evidence.js';
import type { TrafficResult } from './traffic.js';

export interface Case {
  readonly traffic: Pick<TrafficResult, 'acknowledged' | 'orders'>;
  readonly evidence: Evidence;
  /** Product → pieces at the start. */
  readonly stock: ReadonlyMap<string, number>;
  /** The group whose effects are the movements of the stock, with the topics that it must be registered for. */
  readonly stockGroup: Pick<GroupEvidence, 'group' | 'topics'>;
}

export function judge({ traffic, evidence, stock, stockGroup }: Case): readonly Violation[] {
  const history = checkHistory({
    atRest: true,
    committed: evidence.rows.map((row) => ({
      eventId: row._id,
      aggregate: aggregateKey(row),
      version: row.aggregateVersion,
      // Computed from the payload as it is in the outbox, and compared with what was read.
      digest: digestOf(envelopeOf(row, 'original')),
      topic: row.topic,
    })),
    unpublished: evidence.rows
      .filter(({ status }) => status !== 'PUBLISHED')
      .map(({ _id, status }) => ({ eventId: _id, status })),
    groups: evidence.groups.map((group) => groupHistory(group, group.group === stockGroup.group ? evidence : null)),
  });
  return [
    ...checkRegistration(stockGroup, evidence.groups),
    ...history,
    ...checkAcknowledged(traffic.acknowledged, evidence.rows),
    ...checkOrders(traffic.orders, evidence),
    ...evidence.rows.flatMap(checkPublication),
    ...evidence.groups.flatMap((group) => [
      ...checkPositions(group, evidence.rows),
      ...checkInbox(group, evidence.rows),
    ]),
    ...checkStock(evidence, stock),
  ];
}

/** Nothing is asked of a group that nobody registered: without this, a history without groups would be a good one. */
function checkRegistration(
  { group, topics }: Case['stockGroup'],
  registered: readonly GroupEvidence[],
): readonly Violation[] {
  const found = new Set(registered.filter((known) => known.group === group).flatMap((known) => known.topics));
  return topics
    .filter((topic) => !found.has(topic))
    .map((topic) => ({ kind: 'lost', group, eventId: '', detail: `is not registered for the topic ${topic}` }));
}

/** A group without an effect ledger of its own is judged by its inbox. */
function groupHistory(group: GroupEvidence, ledger: Evidence | null): GroupHistory {
  const digests = new Map(group.inbox.map(({ eventId, digest }) => [eventId as string, digest]));
  const applied = group.inbox.filter(({ outcome }) => outcome === 'applied').toSorted((a, b) => a.version - b.version);
  const effects = (ledger?.movements ?? applied).map(({ eventId }) => {
    const digest = digests.get(eventId);
    return { eventId, ...(digest === undefined ? {} : { digest }) };
  });
  return {
    group: group.group,
    topics: group.topics,
    effects,
    settled: group.inbox.map(({ eventId, outcome }) => ({ eventId, outcome })),
    parked: group.parked.map(({ event, state }) => ({ eventId: event.eventId, state })),
  };
}

/** The outbox says of each published event where it went. */
function checkPublication(row: OutboxDocument): readonly Violation[] {
  const found: Violation[] = [];
  const { _id: eventId, publication, publishedAt, digest, status } = row;
  if (status === 'PUBLISHED' && (publication === null || publication.messageId === '' || publishedAt === null)) {
    found.push({ kind: 'lost', eventId, detail: 'counts as published, but without a message or a date' });
  }
  if (digest !== digestOf(envelopeOf(row, 'original'))) {
    found.push({ kind: 'altered', eventId, detail: 'the row has another digest than its content' });
  }
  return found;
}

/** A group stands, open, at the last version of every aggregate of its topics. */
function checkPositions(
  { group, topics, positions }: GroupEvidence,
  rows: readonly OutboxDocument[],
): readonly Violation[] {
  const last = new Map<string, OutboxDocument>();
  for (const row of rows.filter(({ topic }) => topics.includes(topic))) {
    const known = last.get(aggregateKey(row));
    if (known === undefined || known.aggregateVersion < row.aggregateVersion) last.set(aggregateKey(row), row);
  }
  const byAggregate = new Map(positions.map((position) => [position.aggregate as string, position]));
  const behind = [...last].flatMap(([aggregate, row]): readonly Violation[] => {
    const position = byAggregate.get(aggregate);
    if (position?.version === row.aggregateVersion && position.state === 'open') return [];
    const stands =
      position === undefined ? 'has no position' : `stands ${position.state} at version ${position.version}`;
    return [
      {
        kind: 'stuck',
        group,
        eventId: row._id,
        detail: `${aggregate} has ${row.aggregateVersion} versions, the group ${stands}`,
      },
    ];
  });
  const unknown = positions.filter(({ aggregate }) => !last.has(aggregate));
  return [
    ...behind,
    ...unknown.map(({ aggregate }): Violation => ({
      kind: 'phantom',
      group,
      eventId: '',
      detail: `position of ${aggregate}, which has no event`,
    })),
  ];
}

/** One record per event, in the place that the outbox gave the event, and none processed before its predecessor. */
function checkInbox({ group, inbox, setAside }: GroupEvidence, rows: readonly OutboxDocument[]): readonly Violation[] {
  const found: Violation[] = [];
  const rowsById = new Map(rows.map((row) => [row._id, row]));
  const places = new Map(inbox.map((record) => [`${record.aggregate}#${record.version}`, record]));
  for (const record of inbox) {
    const row = rowsById.get(record.eventId);
    if (row !== undefined && (record.version !== row.aggregateVersion || record.aggregate !== aggregateKey(row))) {
      found.push({
        kind: 'altered',
        group,
        eventId: record.eventId,
        detail: `settled as ${record.aggregate}#${record.version}, which is not its place`,
      });
    }
    const before = places.get(`${record.aggregate}#${record.version - 1}`);
    if (before !== undefined && before.processedAt > record.processedAt) {
      found.push({
        kind: 'out of order',
        group,
        eventId: record.eventId,
        detail: `version ${record.version} was settled before version ${before.version}`,
      });
    }
  }
  if (setAside > 0)
    found.push({ kind: 'stuck', group, eventId: '', detail: `${setAside} messages have no place in any sequence` });
  return found;
}
