import type { OutboxDocument } from '@nightporter/contracts';
import type { Timeline } from '@nightporter/ledger';
import type { EventId } from '@nightporter/protocol';
import { expect, type TestContext } from 'vitest';
import { until } from '../../e2e/programs.js';
import { showFigures } from '../../support/figures.js';
import { LIMIT_MS, traffic, type Look, type OperateWorld } from './operate-world.js';

/** What commands print where the operator has to sign. */
export const SIGNED = '--by <you> --reason <why>';
export const NOTHING: Look = { audit: [], doctor: [] };

/** Kind, group, event, aggregate, version. */
type Named = readonly [string, string | null, string | null, string | null, number | null];

export interface Fault {
  /** Of the aggregates that are about it, and of those beside it. */
  readonly name: string;
  readonly seed: () => Promise<void>;
  /** What must be named, and nothing else. */
  readonly audit?: () => readonly Named[];
  /** Severity and check. */
  readonly doctor?: readonly (readonly [string, string])[];
  readonly timeline?: () => Promise<void>;
  /** Does what the findings say, and whatever else an operator has to do for it. */
  readonly mend: (look: Look) => Promise<void>;
}

/** Clean beside real traffic, named exactly, mended by what the findings say, clean again. */
export async function prove(world: OperateWorld, context: TestContext, fault: Fault): Promise<void> {
  const { audit = () => [], doctor = [], mend, name, seed, timeline } = fault;
  const committed = await traffic(world, `beside-${name}`);
  await world.untilRest();
  expect(await world.look()).toEqual(NOTHING);
  await seed();
  const seen = await world.look();
  expect(named(world, seen)).toEqual({ audit: audit(), doctor });
  await timeline?.();
  await mend(seen);
  expect(await world.look()).toEqual(NOTHING);
  showFigures(context, {
    'events beside it': committed,
    'named by the audit': seen.audit.map(({ kind }) => kind).join(' and ') || 'nothing',
    'named by the doctor': seen.doctor.map(({ check }) => check).join(' and ') || 'nothing',
    'left after mending': 0,
  });
}

/** Differences and findings as an operator takes them in: what, in which group, which event, where. */
function named(world: OperateWorld, { audit, doctor }: Look) {
  expect(audit.filter(({ producer }) => producer !== world.producer)).toEqual([]);
  return {
    audit: audit.map(({ aggregate, eventId, group, kind, version }) => [kind, group, eventId, aggregate, version]),
    doctor: doctor.map(({ check, severity }) => [severity, check]),
  };
}

/** The mending of the first difference. */
export function mendingOf({ audit }: Look): string {
  return audit[0]?.mend ?? '';
}

export function keyOf(aggregateId: string): string {
  return `proofs/sample/${aggregateId}`;
}

export async function commitOne(world: OperateWorld, aggregateId: string): Promise<EventId> {
  const [id] = await world.commit([{ aggregateId }]);
  return id as EventId;
}

export async function rowOf(world: OperateWorld, id: EventId): Promise<OutboxDocument> {
  const row = await world.outbox.findOne({ _id: id });
  if (row === null) throw new Error(`no outbox has ${id}`);
  return row;
}

export async function untilStatus(world: OperateWorld, id: EventId, status: OutboxDocument['status']): Promise<void> {
  await until(`${id} is ${status}`, async () => (await rowOf(world, id)).status === status, LIMIT_MS);
}

/** Versions of the aggregate that took effect, in the order in which they did. */
export async function effectsOf({ group }: OperateWorld, aggregateId: string): Promise<readonly number[]> {
  const entries = await group.journal.find({ aggregateId }).sort({ sequence: 1 }).toArray();
  return entries.map(({ version }) => version);
}

export async function timelineOf(
  world: OperateWorld,
  eventId: EventId,
): Promise<Extract<Timeline, { kind: 'known' }> & { readonly exit: number }> {
  const { exit, found } = await world.timeline(eventId);
  if (found.kind !== 'known') throw new Error(`the timeline of ${eventId} is ${found.kind}`);
  return { ...found, exit };
}
