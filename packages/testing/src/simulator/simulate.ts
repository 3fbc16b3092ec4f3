import { aggregateKey } from '@nightporter/protocol';
import { startChaos, endChaos } from './chaos.js';
import { createCluster, type Cluster, type Finding } from './cluster.js';
import { FLOW_MS, eventsThatFlow, reportStanding } from './flow.js';
import { drawKnobs, type Knobs } from './knobs.js';
import { lateGroupOf } from './layout.js';
import { startOperators } from './operators.js';
import { startProducer } from './producer.js';
import { seededRandom, type SeededRandom } from './random.js';
import { createRelayProcesses } from './relay-process.js';
import { unrestOf } from './rest.js';
import type { Sabotage } from './sabotage.js';
import type { SimulatedProcess } from './simulated-process.js';
import { createWorkerProcesses } from './worker-process.js';

export interface SimulationOptions {
  /** Draws everything: the layout, the faults, every delay and every tie. The same seed replays the same history. */
  readonly seed: number;
  /** In place of what the seed would draw. */
  readonly knobs?: Partial<Knobs>;
  readonly sabotage?: Sabotage;
  /** Keep the story in `lines`. */
  readonly tell?: boolean;
}

export interface SimulationResult {
  readonly seed: number;
  readonly knobs: Knobs;
  readonly violations: readonly Finding[];
  readonly events: number;
  /** Steps of the scheduler. */
  readonly steps: number;
  /** Virtual time that the history took. */
  readonly durationMs: number;
  /** Equal for two runs of one seed. */
  readonly traceHash: string;
  readonly lines: readonly string[];
}

const FAULTS_END_MS = 20_000;
/** How long a history may take to come to rest once the faults are over; a call may be late by 20 s. */
const REST_LIMIT_MS = 120_000;
const STEP_MS = 1_000;
/** A history must stay at rest for so long. */
const REST_MS = 5_000;
const STOP_LIMIT_MS = 15_000;

/** Runs one history of the real engines over ports in memory, and reports every promise that it broke. */
export async function simulate(options: SimulationOptions): Promise<SimulationResult> {
  const random = seededRandom(options.seed);
  const knobs = { ...drawKnobs(random.fork()), ...options.knobs };
  const cluster = createCluster(random, knobs, { tell: options.tell ?? false });
  cluster.trace.note('knobs', () => JSON.stringify(knobs));
  connect(cluster, random.fork());
  const sabotage = options.sabotage ?? null;
  const relays = createRelayProcesses(cluster, sabotage);
  const workers = createWorkerProcesses(cluster, sabotage);
  const processes = [...relays, ...workers];
  const isLate = (process: SimulatedProcess): boolean => process.name.startsWith(lateGroupOf(knobs) ?? 'no process');
  for (const process of processes) if (!isLate(process)) process.start();
  if (knobs.lateGroup) startLateGroup(cluster, workers.filter(isLate));
  startProducer(cluster, FAULTS_END_MS);
  startOperators(cluster);
  startChaos(cluster, { relays, workers });
  await cluster.schedule.runUntil(FAULTS_END_MS - FLOW_MS);
  const flowing = eventsThatFlow(cluster);
  await cluster.schedule.runUntil(FAULTS_END_MS);
  reportStanding(cluster, flowing);
  endChaos(cluster);
  await comeToRest(cluster, processes);
  await stopAll(cluster, processes);
  return {
    seed: options.seed,
    knobs,
    violations: cluster.findings,
    events: cluster.assertions.committed.length,
    steps: cluster.schedule.steps,
    durationMs: cluster.schedule.nowMs,
    traceHash: cluster.trace.hash,
    lines: cluster.trace.lines,
  };
}

/** A group's transaction commits its documents, its effects and what its handlers emitted, all in one moment. */
function connect(cluster: Cluster, random: SeededRandom): void {
  for (const { name, memory } of cluster.groups) {
    memory.onCommitted = (commit) => {
      cluster.assertions.groupCommitted(name, commit);
      if (commit.emitted.length > 0) cluster.database.outbox.commit(commit.emitted);
    };
  }
  cluster.assertions.shards = new Map(cluster.shards.map((shard) => [shard.id, new Set<number>(shard.slots)]));
  if (cluster.knobs.startVersions) setStartVersions(cluster, random);
}

/** As a registration `from: now` leaves it: positions at the heads of that moment. */
function setStartVersions({ aggregates, groups, assertions }: Cluster, random: SeededRandom): void {
  const group = groups.at(-1);
  if (group === undefined) return;
  for (const identity of aggregates) {
    if (random.chance(0.5)) continue;
    const version = 1 + random.integer(3);
    const aggregate = aggregateKey(identity);
    group.memory.startAt(aggregate, version);
    assertions.group(group.name).startAt(aggregate, version);
  }
}

/** Known to the broker, then registered, then received for: nothing falls between the history and what is new. */
function startLateGroup(
  { broker, database, groups, knobs, random, schedule, trace }: Cluster,
  workers: readonly SimulatedProcess[],
): void {
  schedule.after(random.between(500, 12_000), () => {
    for (const { name, topics } of groups) {
      if (name !== lateGroupOf(knobs)) continue;
      trace.note('a group comes late', () => name);
      for (const topic of topics) broker.topic(topic).skipAll(name);
      database.groups.register(name, { topics });
    }
    for (const worker of workers) worker.start();
  });
}

async function comeToRest(cluster: Cluster, processes: readonly SimulatedProcess[]): Promise<void> {
  const { schedule, late } = cluster;
  const deadlineMs = schedule.nowMs + REST_LIMIT_MS;
  let restSinceMs: number | null = null;
  while (schedule.nowMs < deadlineMs) {
    await schedule.runUntil(schedule.nowMs + STEP_MS);
    const isQuiet = late.count === 0 && processes.every((process) => process.isUp);
    const isAtRest = isQuiet && unrestOf(cluster).length === 0;
    restSinceMs = isAtRest ? (restSinceMs ?? schedule.nowMs) : null;
    if (restSinceMs !== null && schedule.nowMs - restSinceMs >= REST_MS) return;
    if (cluster.findings.length > 0 && schedule.nowMs > deadlineMs - REST_LIMIT_MS / 2) break;
  }
  for (const { rule, detail } of unrestOf(cluster)) cluster.report(rule, detail);
  for (const process of processes) {
    if (!process.isUp) cluster.report('processes come back', `${process.name} is not up at rest`);
  }
}

/** Without faults, a drain ends within its limit. */
async function stopAll(cluster: Cluster, processes: readonly SimulatedProcess[]): Promise<void> {
  for (const process of processes) process.stop('for good');
  await cluster.schedule.runUntil(cluster.schedule.nowMs + STOP_LIMIT_MS);
  for (const process of processes) {
    if (process.isRunning) cluster.report('stop() drains in time', `${process.name} did not stop`);
  }
}
