import { createRelayDatabase, MemoryBroker, MemoryGroup, type RelayDatabase } from '../memory/index.js';
import type { Shard } from '@nightporter/relay';
import { Assertions, type Report } from './assertions.js';
import type { Knobs } from './knobs.js';
import { GROUPS, lateGroupOf, layOutAggregates, layOutShards, topicsOf, type SimulatedAggregate } from './layout.js';
import { Plans } from './plans.js';
import type { SeededRandom } from './random.js';
import { Schedule } from './schedule.js';
import type { NetworkFaults } from './simulated-network.js';
import { Trace } from './trace.js';

export interface SimulatedGroup {
  readonly name: string;
  readonly topics: readonly string[];
  readonly memory: MemoryGroup;
}

/** A violation as the simulator reports it: the rule that was broken, and how. */
export interface Finding {
  readonly rule: string;
  readonly detail: string;
  readonly atMs: number;
}

/** What the topics and sends are subject to now. */
export interface BrokerTroubles {
  readonly brokenTopics: Set<string>;
  /** Takes nothing now, for reasons that nobody knows. */
  awayTopic: string | null;
  throttled: boolean;
}

/** Everything of a history that is no process: servers, time, chance, and who watches them. */
export interface Cluster {
  readonly knobs: Knobs;
  readonly random: SeededRandom;
  readonly schedule: Schedule;
  readonly trace: Trace;
  readonly plans: Plans;
  readonly aggregates: readonly SimulatedAggregate[];
  readonly shards: readonly Shard[];
  readonly database: RelayDatabase;
  readonly broker: MemoryBroker;
  readonly troubles: BrokerTroubles;
  readonly groups: readonly SimulatedGroup[];
  readonly faults: NetworkFaults & { active: boolean };
  readonly late: { count: number };
  readonly assertions: Assertions;
  readonly findings: readonly Finding[];
  readonly report: Report;
}

/** More of them tell nothing new. */
const FINDINGS_MAX = 20;

export function createCluster(random: SeededRandom, knobs: Knobs, options: { tell: boolean }): Cluster {
  const schedule = new Schedule(random.fork());
  const now = (): number => schedule.nowMs;
  const trace = new Trace(now, options);
  const findings: Finding[] = [];
  const report: Report = (rule, detail) => {
    trace.note(`#### ${rule}`, () => detail);
    if (findings.length < FINDINGS_MAX) findings.push({ rule, detail, atMs: schedule.nowMs });
  };
  const aggregates = layOutAggregates(knobs);
  const database = createRelayDatabase(now);
  database.outbox.oplog.options = {
    whenOvertaken: knobs.silentSkips ? 'skip' : 'fail',
    batchMax: random.pick([1, 4, 100]),
  };
  const broker = new MemoryBroker({ clock: now, random: random.fork(), queues: 2 });
  const groups = GROUPS.map((name) => ({ name, topics: topicsOf(name, knobs), memory: new MemoryGroup(now) }));
  const plans = new Plans(random.fork(), knobs, GROUPS);
  const assertions = new Assertions({ database, broker, groups, report, trace });
  const faults = { ...knobs, active: true };
  const troubles: BrokerTroubles = { brokenTopics: new Set(), awayTopic: null, throttled: false };
  broker.refuse = (request) => {
    const { row, relay } = request;
    if (troubles.brokenTopics.has(row.topic)) return assertions.refused(request, 'topic');
    if (troubles.throttled || troubles.awayTopic === row.topic) return assertions.refused(request, 'transient');
    const plan = plans.of(row.eventId);
    const spared = plan.refusedOnlyFrom !== null && !relay.startsWith(plan.refusedOnlyFrom);
    if (row.form === 'tombstone' || plan.permanentFailures === 0 || spared) return null;
    if (plan.refusedOnlyFrom === null) plan.permanentFailures -= 1;
    return assertions.refused(request, 'permanent');
  };
  const losses = random.fork();
  broker.loses = ({ row }) => {
    const isLost = faults.active && losses.chance(knobs.lostMessages);
    if (isLost) trace.note('the broker loses a message', () => row.eventId);
    return isLost;
  };
  // Nothing is there yet: from now on is from the beginning on, without a history.
  for (const { name, topics } of groups) {
    if (name !== lateGroupOf(knobs)) database.groups.register(name, { topics, from: 'now' });
  }
  return {
    knobs,
    random,
    schedule,
    trace,
    plans,
    aggregates,
    shards: layOutShards(aggregates, knobs),
    database,
    broker,
    troubles,
    groups,
    faults,
    late: { count: 0 },
    assertions,
    findings,
    report,
  };
}
