import type { OutboxDocument } from '@nightporter/contracts';
import {
  OUTBOX_COLLECTIONS,
  createDatabaseClock,
  createLedgerRows,
  durableDatabase,
  guarded,
  type GroupDocument,
  type LedgerRow,
  type OperatorActionDocument,
} from '@nightporter/mongo';
import { aggregateKey, type EventId } from '@nightporter/protocol';
import type { EventSummary, GroupTimeline, Step, Timeline } from './contract.js';
import { placeOfGroup, type Deployment, type GroupPlace, type ProducerPlace } from './deployment.js';
import { explainGroup, explainRelay, needOf, type GroupVerdict } from './explain.js';
import { findInGroup, readGroup, type EventPlace, type GroupRecords } from './group-facts.js';
import { INBOX_RETENTION_MS, inboxRetentionOf } from './inbox-retention.js';
import { mendOfGroup, mendOfRelay } from './mending.js';
import { relayFactsOf } from './relay-facts.js';
import { groupSteps, inOrder, producerSteps } from './steps.js';

const ACTIONS_MAX = 100;

/** Everything that is known of one event. Rejects with NP_STORE_UNAVAILABLE or NP_ARCHIVE_FAILED. */
export async function timeline(deployment: Deployment, eventId: EventId): Promise<Timeline> {
  const unreadable: string[] = [];
  for (const producer of deployment.producers) {
    const row = await createLedgerRows(producer).findEvent(eventId);
    if (row?.kind === 'row' && isEvent(row.document)) return known(deployment, producer, row);
    if (row?.kind === 'row')
      unreadable.push(`${producer.database}.${row.place} has a document of that id, and no emit() has written it.`);
    else if (row !== null) unreadable.push(`${producer.database} has it in ${row.place}: ${row.reason}`);
  }
  return onlyInGroups(deployment, eventId, unreadable);
}

/** Whatever somebody else has written under the id has no story. */
function isEvent(row: OutboxDocument): boolean {
  const { aggregateId, aggregateType, createdAt, source }: Partial<OutboxDocument> = row;
  return [source, aggregateType, aggregateId].every((part) => typeof part === 'string') && createdAt instanceof Date;
}

async function known(
  deployment: Deployment,
  producer: ProducerPlace,
  { document: row, place: where }: Extract<LedgerRow, { kind: 'row' }>,
): Promise<Timeline> {
  const { relay: relayPlace } = deployment;
  const relay = explainRelay(await relayFactsOf(row, { producer, relay: relayPlace }));
  const actions = await actionsOn(producer, row._id);
  const event = summaryOf(row, { producer: producer.database, place: where });
  const place = { ...event, messageId: row.publication?.messageId ?? null };
  const found = await groupsOf(deployment, place, await registrationsOf(producer, row.topic));
  const isArchived = where !== OUTBOX_COLLECTIONS.outbox;
  const notKnown = [
    'When its transaction committed is not kept: after it was created, and before it was captured.',
    ...(relayPlace === null ? ["The relay's database is not known: pauses and leases were not looked at."] : []),
    ...(isArchived ? [`Retention has moved it to ${where}.`] : []),
    ...found.flatMap(({ groupTimeline }) => placeNote(groupTimeline)),
  ];
  return {
    kind: 'known',
    event,
    payload: row.payload,
    relay,
    mend: needOf(relay) === 'act' ? mendOfRelay(relay, row._id) : null,
    publication: row.publication === null ? null : publicationOf(row.publication),
    actions,
    groups: found.map(({ groupTimeline }) => groupTimeline),
    steps: inOrder([...producerSteps(row, actions), ...found.flatMap(({ steps }) => steps)]),
    notKnown,
  };
}

function publicationOf({ capturedAt, epoch, messageId, relay, topic }: NonNullable<OutboxDocument['publication']>) {
  return { topic, messageId, relay, epoch, capturedAt };
}

/** Without what it says. */
export function summaryOf(
  row: Omit<OutboxDocument, 'payload'>,
  where: { readonly producer: string; readonly place: string },
): EventSummary {
  return {
    eventId: row._id,
    eventType: row.eventType,
    eventVersion: row.eventVersion,
    source: row.source,
    aggregate: aggregateKey(row),
    version: row.aggregateVersion,
    topic: row.topic,
    status: row.status,
    occurredAt: row.occurredAt,
    createdAt: row.createdAt,
    publishedAt: row.publishedAt,
    headers: row.headers,
    digest: row.digest,
    ...where,
  };
}

/** Groups that are registered for a topic, and how far each is. */
export async function registrationsOf(
  { client, database }: ProducerPlace,
  topic: string,
): Promise<ReadonlyMap<string, { readonly watermarkMs: number }>> {
  const groups = durableDatabase(client, database).collection<GroupDocument>(OUTBOX_COLLECTIONS.groups);
  const found = await guarded(`reading ${groups.namespace}`, () => groups.find({ topics: topic }).toArray());
  return new Map(found.map(({ _id, watermark }) => [_id, { watermarkMs: watermark.getTime() }]));
}

async function actionsOn(
  { client, database }: ProducerPlace,
  eventId: EventId,
): Promise<readonly OperatorActionDocument[]> {
  const actions = durableDatabase(client, database).collection<OperatorActionDocument>(OUTBOX_COLLECTIONS.actions);
  return guarded(`reading ${actions.namespace}`, () =>
    actions.find({ target: eventId }).sort({ at: 1 }).limit(ACTIONS_MAX).toArray(),
  );
}

interface Found {
  readonly groupTimeline: GroupTimeline;
  readonly steps: readonly Step[];
}

/** Those that are registered for the topic, and others that know the event all the same. */
async function groupsOf(
  deployment: Deployment,
  event: EventSummary & EventPlace,
  registrations: ReadonlyMap<string, { readonly watermarkMs: number }>,
): Promise<readonly Found[]> {
  const names = [...new Set([...registrations.keys(), ...deployment.groups.map(({ group }) => group)])].sort();
  const found: Found[] = [];
  for (const group of names) {
    const home = placeOfGroup(deployment, group);
    const registration = registrations.get(group) ?? null;
    if (home === null) {
      found.push({ groupTimeline: withoutPlace(group), steps: [] });
      continue;
    }
    const records = await readGroup(home, event);
    const isConcerned = registration !== null || records.inbox !== null || records.parked !== null;
    if (!isConcerned) continue;
    const publishedAtMs = event.publishedAt?.getTime() ?? null;
    const mayHaveExpired = publishedAtMs === null || (await expiresBefore(home)) > publishedAtMs;
    const facts = { ...records.facts, publishedAtMs, watermarkMs: registration?.watermarkMs ?? null, mayHaveExpired };
    const verdict = explainGroup(facts);
    const of = { home, isRegistered: registration !== null, verdict };
    found.push({ groupTimeline: timelineOf(of, event, records), steps: groupSteps(group, records) });
  }
  return found;
}

/** Records of what was published before that moment may have expired: one lives as long as the group keeps them, from when the event was settled. */
async function expiresBefore(home: GroupPlace): Promise<number> {
  const now = await createDatabaseClock(home.client).read();
  return now.getTime() - ((await inboxRetentionOf(home)) ?? INBOX_RETENTION_MS);
}

function timelineOf(
  { home, isRegistered, verdict }: { home: GroupPlace; isRegistered: boolean; verdict: GroupVerdict },
  { aggregate, eventId, version }: EventPlace,
  { actions, inbox, parked }: GroupRecords,
): GroupTimeline {
  const { database, group } = home;
  const isEdited = inbox !== null && inbox.appliedDigest !== inbox.digest;
  return {
    group,
    database,
    isRegistered,
    verdict,
    mend: needOf(verdict) === 'act' ? mendOfGroup(verdict, { group, database, eventId, aggregate, version }) : null,
    attempts: inbox?.attempts ?? parked?.attempts ?? 0,
    repeats: inbox?.duplicates ?? 0,
    receivedAt: inbox?.receivedAt ?? parked?.parkedAt ?? null,
    settledAt: inbox?.processedAt ?? null,
    appliedDigest: isEdited ? inbox.appliedDigest : null,
    actions,
  };
}

function withoutPlace(group: string): GroupTimeline {
  const nothing = {
    verdict: null,
    mend: null,
    attempts: 0,
    repeats: 0,
    receivedAt: null,
    settledAt: null,
    appliedDigest: null,
  };
  return { group, database: null, isRegistered: true, ...nothing, actions: [] };
}

function placeNote({ database, group }: GroupTimeline): readonly string[] {
  return database === null
    ? [`Group ${group} is registered for its topic, and where it keeps its data is not known.`]
    : [];
}

async function onlyInGroups(
  deployment: Deployment,
  eventId: EventId,
  unreadable: readonly string[],
): Promise<Timeline> {
  const found: Found[] = [];
  for (const home of deployment.groups) {
    const place: EventPlace | null = await findInGroup(home, eventId);
    if (place === null) continue;
    const records = await readGroup(home, place);
    const verdict = explainGroup({ ...records.facts, publishedAtMs: null, watermarkMs: null, mayHaveExpired: true });
    const of = { home, isRegistered: false, verdict };
    found.push({ groupTimeline: timelineOf(of, place, records), steps: groupSteps(home.group, records) });
  }
  if (found.length === 0) return { kind: 'unknown', eventId, lookedIn: lookedIn(deployment), notKnown: unreadable };
  const gone = 'No outbox and no archive that was looked at has it: retention or somebody has deleted it.';
  return {
    kind: 'only-in-groups',
    eventId,
    groups: found.map(({ groupTimeline }) => groupTimeline),
    steps: inOrder(found.flatMap(({ steps }) => steps)),
    notKnown: unreadable.length > 0 ? unreadable : [gone],
  };
}

function lookedIn({ groups, producers }: Deployment): readonly string[] {
  return [
    ...producers.map(({ database }) => `outbox and archive of ${database}`),
    ...groups.map(({ database, group }) => `group ${group} in ${database}`),
  ];
}
