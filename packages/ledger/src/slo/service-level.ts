import { OUTBOX_COLLECTIONS, REGISTRY, durableDatabase, guarded, type GroupDocument } from '@nightporter/mongo';
import { NightporterError } from '@nightporter/protocol';
import type { MongoClient } from 'mongodb';
import { placeOfGroup, type Deployment, type GroupPlace, type ProducerPlace } from '../questions/deployment.js';
import { commitsOf } from './commits.js';
import {
  SLO_OBJECTIVE,
  SLO_WINDOWS,
  judgeWindows,
  windowsOf,
  type SettledEvent,
  type SloVerdict,
  type SloWindow,
} from './judge.js';
import { sampleInbox } from './sample.js';

export interface ServiceLevelRequest {
  /** Of this group alone; without it of every registered one. */
  readonly group?: string;
  /** From commit to settled. Default 5,000, as SLO_LATENCY_MS of a worker. */
  readonly thresholdMs?: number;
  /** Records of an inbox that are read, at most, the newest. Default 20,000. */
  readonly recordsMax?: number;
}

export interface GroupServiceLevel {
  readonly group: string;
  readonly verdict: SloVerdict;
  readonly windows: readonly SloWindow[];
  /** What the figures rest on: so many of the newest records of the inbox, complete from that moment on (null: all that there are). */
  readonly sample: { readonly records: number; readonly completeFrom: Date | null };
  readonly notes: readonly string[];
}

export interface ServiceLevel {
  readonly objective: number;
  readonly thresholdMs: number;
  readonly groups: readonly GroupServiceLevel[];
  readonly notKnown: readonly string[];
}

interface Registered {
  readonly group: string;
  readonly producers: readonly ProducerPlace[];
  /** Since when every producer knows it. */
  readonly fromMs: number;
}

/**
 * How long each group takes from commit to settled, from what is durable: the inbox against the outbox and its archive. An event counts once it is
 * settled; what was committed before the group was registered does not count, as in the metrics. Costs what is sampled, not what was
 * ever settled. Rejects with NP_ACTION_INVALID for a group that no producer knows, and with NP_STORE_UNAVAILABLE.
 */
export async function serviceLevel(
  deployment: Deployment,
  { group, recordsMax = 20_000, thresholdMs = 5_000 }: ServiceLevelRequest = {},
): Promise<ServiceLevel> {
  return guarded('asking for the service level', async () => {
    const all = await registeredGroups(deployment);
    const wanted = group === undefined ? all : all.filter((one) => one.group === group);
    if (group !== undefined && wanted.length === 0) throw unknownGroup(group, all);
    const groups: GroupServiceLevel[] = [];
    const notKnown: string[] = [];
    for (const registered of wanted) {
      const home = placeOfGroup(deployment, registered.group);
      if (home === null) notKnown.push(`Where group ${registered.group} keeps its data is not known.`);
      else groups.push(await levelOf(home, registered, { recordsMax, thresholdMs }));
    }
    return { objective: SLO_OBJECTIVE, thresholdMs, groups, notKnown };
  });
}

async function levelOf(
  home: GroupPlace,
  { fromMs, producers }: Registered,
  { recordsMax, thresholdMs }: Required<Pick<ServiceLevelRequest, 'recordsMax' | 'thresholdMs'>>,
): Promise<GroupServiceLevel> {
  const { completeFromMs, nowMs, read, records } = await sampleInbox(home, recordsMax);
  const longestMs = Math.max(...SLO_WINDOWS.map(({ lengthMs }) => lengthMs));
  const sinceMs = Math.max(nowMs - longestMs, completeFromMs);
  // What a group settled before all of its producers knew it was committed before that.
  const recent = records.filter(({ processedAtMs }) => processedAtMs >= Math.max(sinceMs, fromMs));
  const { atMs, notes } = await commitsOf(
    producers,
    recent.map(({ eventId }) => eventId),
  );
  const events = recent.flatMap(({ eventId, processedAtMs }): readonly SettledEvent[] => {
    const committedAtMs = atMs.get(eventId);
    if (committedAtMs === undefined) return [{ processedAtMs, latencyMs: null }];
    // Two nodes of a replica set may be a few milliseconds apart.
    return committedAtMs < fromMs ? [] : [{ processedAtMs, latencyMs: Math.max(0, processedAtMs - committedAtMs) }];
  });
  const windows = windowsOf(events, { nowMs, completeFromMs, thresholdMs });
  const isPartial = windows.some(({ isWhole }) => !isWhole);
  const completeFrom = isPartial ? new Date(completeFromMs) : null;
  return {
    group: home.group,
    verdict: judgeWindows(windows),
    windows,
    sample: { records: read, completeFrom },
    notes: [...clockNotes(home, producers), ...notes],
  };
}

function clockNotes(home: GroupPlace, producers: readonly ProducerPlace[]): readonly string[] {
  const elsewhere = producers.filter(({ client }) => hostsOf(client) !== hostsOf(home.client));
  return elsewhere.map(
    ({ database }) =>
      `Group ${home.group} and its producer ${database} are on different deployments, as their addresses say: the latency is between two clocks (nightporter doctor tells how far they are apart).`,
  );
}

function hostsOf(client: MongoClient): string {
  return client.options.hosts.map(String).toSorted().join(',');
}

async function registeredGroups(deployment: Deployment): Promise<readonly Registered[]> {
  const found = new Map<string, Registered>();
  for (const producer of deployment.producers) {
    const groups = durableDatabase(producer.client, producer.database).collection<GroupDocument>(
      OUTBOX_COLLECTIONS.groups,
    );
    const registrations = groups.find({ _id: { $ne: REGISTRY } }, { projection: { registeredAt: 1 } });
    for (const { _id: group, registeredAt } of await registrations.toArray()) {
      const before = found.get(group);
      const producers = [...(before?.producers ?? []), producer];
      found.set(group, { group, producers, fromMs: Math.max(before?.fromMs ?? 0, registeredAt.getTime()) });
    }
  }
  return [...found.values()].toSorted((left, right) => (left.group < right.group ? -1 : 1));
}

function unknownGroup(group: string, all: readonly Registered[]): NightporterError {
  const known = all.map((one) => one.group).join(', ');
  return new NightporterError('NP_ACTION_INVALID', `No producer knows group ${group}; registered: ${known || 'none'}.`);
}
