import {
  OUTBOX_COLLECTIONS,
  REGISTRY,
  createDatabaseClock,
  durableDatabase,
  guarded,
  type GroupDocument,
  type RegistryDocument,
} from '@nightporter/mongo';
import { SIGNED } from '../questions/mending.js';
import { INBOX_RETENTION_MS } from '../questions/inbox-retention.js';
import { invalid } from '../requests.js';
import { placeOfGroup, type Deployment, type ProducerPlace } from '../questions/deployment.js';
import { auditCommitted, auditRows, risingHeads } from './committed.js';
import { auditContiguity } from './contiguity.js';
import type { AuditReport, AuditRequest, GroupAudit, ProducerAudit } from './contract.js';
import { Findings } from './findings.js';
import { GroupComparison, type Registration } from './group-audit.js';
import type { Rule } from './judge.js';
import { auditPhantoms, auditSetAside } from './phantoms.js';
import { BATCH, publishedBatches } from './rows.js';

/** How an audit goes on. For tests: the defaults suit everybody. */
interface Pace {
  /** Rows of a batch, at least. */
  readonly batchRows?: number;
  /** Batches between two marks. */
  readonly markEvery?: number;
}

interface World {
  readonly deployment: Deployment;
  /** Those of its producers that are audited. */
  readonly audited: readonly ProducerPlace[];
  readonly request: AuditRequest;
  readonly findings: Findings;
  readonly notes: string[];
  readonly lagMs: number;
  readonly pace: Required<Pace>;
}

/** Rejects with NP_ACTION_INVALID for a request that is out of range, NP_ARCHIVE_FAILED or NP_STORE_UNAVAILABLE. */
export async function audit(
  deployment: Deployment,
  request: AuditRequest = {},
  { batchRows = BATCH, markEvery = 20 }: Pace = {},
): Promise<AuditReport> {
  const { differencesMax = 1_000, full: isFull = false, lagMs = 10_000 } = request;
  assertWhole('differencesMax', differencesMax, { min: 1, max: 1_000_000 });
  assertWhole('lagMs', lagMs, { min: 0, max: 600_000 });
  assertWhole('graceMs', request.graceMs ?? 0, { min: 0, max: 86_400_000 });
  const started = performance.now();
  const startedAt = new Date();
  const world: World = {
    deployment,
    audited: auditedOf(deployment, request),
    request,
    findings: new Findings(differencesMax),
    notes: [],
    lagMs,
    pace: { batchRows, markEvery },
  };
  const producers: ProducerAudit[] = [];
  const groups: GroupAudit[] = [];
  for (const producer of world.audited) {
    if (request.signal?.aborted === true) break;
    const found = await guarded(`auditing ${producer.database}`, () => auditProducer(world, producer));
    producers.push(found.producer);
    groups.push(...found.groups);
  }
  const { findings, notes } = world;
  return {
    kind: request.signal?.aborted === true ? 'interrupted' : 'completed',
    isFull,
    startedAt,
    elapsedMs: Math.round(performance.now() - started),
    producers,
    groups,
    differences: findings.kept,
    differencesTotal: findings.total,
    notes,
  };
}

function auditedOf({ producers }: Deployment, { producers: wanted }: AuditRequest): readonly ProducerPlace[] {
  if (wanted === undefined) return producers;
  const known = producers.map(({ database }) => database);
  const unknown = wanted.filter((name) => !known.includes(name));
  if (unknown.length > 0)
    throw invalid(`there is no producer ${unknown.join(', ')} to audit; accepted: ${known.join(', ')}.`);
  return producers.filter(({ database }) => wanted.includes(database));
}

async function auditProducer(
  world: World,
  producer: ProducerPlace,
): Promise<{ readonly producer: ProducerAudit; readonly groups: readonly GroupAudit[] }> {
  const { findings, request } = world;
  const rule = await ruleOf(world, producer);
  const committed = await auditCommitted(producer, { findings, rule });
  const revision = await registryRevision(producer);
  const registrations = await registrationsOf(world, producer);
  const hasRetentionRun = async (): Promise<boolean> => (await registryRevision(producer)) !== revision;
  const comparisons = await compareAll(world, producer, { registrations, rule, hasRetentionRun });
  if (await hasRetentionRun()) {
    world.notes.push(
      `Retention or a registration has run in ${producer.database} meanwhile: what was compared is not marked as such.`,
    );
    for (const comparison of comparisons) comparison.distrust();
  }
  for (const comparison of comparisons) await comparison.save();
  const homes = registrations.flatMap(({ _id, topics }) => {
    const home = placeOfGroup(world.deployment, _id);
    return home === null ? [] : [{ ...home, topics }];
  });
  for (const home of homes)
    if ((await firstProducerOf(world.audited, home.group)) === producer)
      await auditSetAside(home, producer.database, findings);
  let contiguity: Pick<ProducerAudit, 'present' | 'deleted'> = { present: null, deleted: null };
  if (request.full === true && request.signal?.aborted !== true) {
    contiguity = await auditContiguity(producer, { findings, groups: homes });
    await auditInboxes(world, producer, homes);
  }
  return {
    producer: { producer: producer.database, ...committed, ...contiguity },
    groups: comparisons.map((comparison) => comparison.report()),
  };
}

/** Each group's inbox once, however many producers it reads. */
async function auditInboxes(
  { audited, deployment, findings, request }: World,
  producer: ProducerPlace,
  homes: Parameters<typeof auditContiguity>[1]['groups'],
): Promise<void> {
  for (const home of homes) {
    const first = await firstProducerOf(audited, home.group);
    if (first !== producer) continue;
    await auditPhantoms({ home, producers: deployment.producers, findings, signal: request.signal });
  }
}

async function firstProducerOf(producers: readonly ProducerPlace[], group: string): Promise<ProducerPlace | null> {
  for (const producer of producers) if ((await groupsOf(producer).findOne({ _id: group })) !== null) return producer;
  return null;
}

async function ruleOf({ request }: World, { client }: ProducerPlace): Promise<Rule> {
  const { graceMs = 60_000, inboxRetentionMs = INBOX_RETENTION_MS } = request;
  return { nowMs: (await createDatabaseClock(client).read()).getTime(), graceMs, inboxRetentionMs };
}

function groupsOf({ client, database }: ProducerPlace) {
  return durableDatabase(client, database).collection<GroupDocument>(OUTBOX_COLLECTIONS.groups);
}

async function registrationsOf({ request }: World, producer: ProducerPlace): Promise<readonly Registration[]> {
  const found = await groupsOf(producer)
    .find({ _id: { $ne: REGISTRY } })
    .sort({ _id: 1 })
    .toArray();
  return found.filter(({ _id }) => request.groups === undefined || request.groups.includes(_id));
}

async function registryRevision(producer: ProducerPlace): Promise<number> {
  const registry = await groupsOf(producer).findOne<Pick<RegistryDocument, 'revision'>>({ _id: REGISTRY });
  return registry?.revision ?? 0;
}

interface Comparing {
  readonly registrations: readonly Registration[];
  readonly rule: Rule;
  readonly hasRetentionRun: () => Promise<boolean>;
}

/** One walk over what is published, for all groups: each passes over what it has compared before. */
async function compareAll(
  world: World,
  producer: ProducerPlace,
  { hasRetentionRun, registrations, rule }: Comparing,
): Promise<readonly GroupComparison[]> {
  const { deployment, findings, lagMs, notes, pace, request } = world;
  const comparisons: GroupComparison[] = [];
  for (const registration of registrations) {
    const { _id: group } = registration;
    const home = placeOfGroup(deployment, group);
    if (home === null) {
      const nothing = { eventId: null, aggregate: null, version: null };
      const text = `Group ${group} is registered, and nobody says where it keeps its data: name its database.`;
      const mend = `--group-db ${group}=<database>, or, if it is no more: nightporter groups remove ${group} ${SIGNED}`;
      findings.add({ kind: 'not-audited', producer: producer.database, group, ...nothing, text, mend });
      continue;
    }
    const options = { home, producer, registration, rule, findings, notes };
    comparisons.push(await GroupComparison.begin(options, request.full ?? false));
  }
  const untilMs = rule.nowMs - lagMs;
  const afterMs = comparisons.length === 0 ? 0 : Math.min(...comparisons.map((comparison) => comparison.afterMs));
  // Without a group there is still what the rows themselves say, which only a full audit reads.
  if (comparisons.length === 0 && request.full !== true) return comparisons;
  const heads = risingHeads(producer);
  let [rows, batches] = [0, 0];
  for await (const batch of publishedBatches(producer, { afterMs, untilMs }, pace.batchRows)) {
    if (request.signal?.aborted === true) return comparisons;
    const events = await auditRows(producer, batch, { heads, findings });
    const toMs = batch.at(-1)?.publishedAt.getTime() ?? afterMs;
    for (const comparison of comparisons) await comparison.compare(events, toMs);
    rows += batch.length;
    batches += 1;
    if (batches % pace.markEvery === 0) await markAll(comparisons, hasRetentionRun);
    await request.progress?.({ rows, producer: producer.database });
  }
  for (const comparison of comparisons) await comparison.compare([], untilMs);
  return comparisons;
}

/** What retention has moved since the walk began may lie where the walk does not look: a mark must not pass it. */
async function markAll(
  comparisons: readonly GroupComparison[],
  hasRetentionRun: () => Promise<boolean>,
): Promise<void> {
  if (await hasRetentionRun()) for (const comparison of comparisons) comparison.distrust();
  for (const comparison of comparisons) await comparison.save();
}

function assertWhole(name: string, value: number, { min, max }: { readonly min: number; readonly max: number }): void {
  if (Number.isSafeInteger(value) && value >= min && value <= max) return;
  throw invalid(`${name} of an audit is ${value}; accepted: a whole number from ${min} to ${max}.`);
}
