import { memoryPublisher, memoryRelayStores } from '../memory/index.js';
import { createRelay, type RelayEvent, type RelayPorts } from '@nightporter/relay';
import type { Cluster } from './cluster.js';
import { nameOf } from './assertions.js';
import type { Sabotage } from './sabotage.js';
import { SimulatedProcess } from './simulated-process.js';

/** Longer than any lease: a claim is taken back at a take-over, and this is only for what executes late. */
const CLAIM_MS = 6_000;

/** Times are short and limits are tight, so that much happens in twenty seconds and every limit is met. */
function drawRelayOptions({ random, shards, knobs }: Cluster): Omit<Parameters<typeof createRelay>[1], 'owner'> {
  return {
    shards,
    sharesShards: knobs.sharing,
    leaseMs: 4_000,
    standbyEveryMs: 700,
    drainMs: 3_000,
    windowMax: random.pick([1, 3, 32]),
    bufferMax: random.pick([2, 8, 64]),
    trackedMax: random.pick([2, 8, 64]),
    heldLanesMax: random.pick([1, 100]),
    rememberedLanesMax: random.pick([1, 2, 100]),
    pollEveryMs: random.pick([100, 500]),
    pollBatchMax: random.pick([1, 2, 100]),
    sweepEveryMs: 3_000,
    sweepPageMax: random.pick([1, 2, 100]),
    streamGraceMs: random.pick([100, 1_000]),
    heldReadEveryMs: random.pick([500, 2_000]),
    laneReadMax: random.pick([1, 64]),
    laneRowsMax: random.pick([1, 2, 32]),
    sendsPerSecondMax: random.pick([null, null, null, 40]),
    controlsEveryMs: 300,
    markEveryMs: random.pick([3, 20]),
    markBatchMax: random.pick([1, 3, 100]),
    checkpointEveryMs: 100,
    idleCheckpointEveryMs: 1_000,
    sendMs: random.pick([1_500, 3_500]),
    callMs: random.pick([1_500, 4_000]),
    transientDelayMs: 50,
    transientDelayMaxMs: 1_000,
    stalledAfter: random.pick([2, 4]),
    topicDelayMs: 200,
    topicDelayMaxMs: 1_000,
    failedDelayMs: 300,
    failedDelayMaxMs: 1_000,
    attemptsMax: random.pick([1, 3]),
    databaseDelayMs: 50,
    databaseDelayMaxMs: 500,
  };
}

/** Two relays: one works, the other stands by; with two shards both may work. Three that share out shards each have a part. */
export function createRelayProcesses(cluster: Cluster, sabotage: Sabotage | null): readonly SimulatedProcess[] {
  const options = drawRelayOptions(cluster);
  const indexes = cluster.knobs.sharing ? [0, 1, 2] : [0, 1];
  return indexes.map((index) => {
    const capture = cluster.knobs.polling && index === 0 ? 'polling' : 'stream';
    return new SimulatedProcess({
      name: `relay-${index}`,
      cluster,
      restartMsMax: 6_000,
      boot: ({ owner, clock, random, network }) => {
        const ports: RelayPorts = {
          ...memoryRelayStores(cluster.database, network, { relay: owner, claimMs: CLAIM_MS }),
          publisher: memoryPublisher(cluster.broker, network),
          clock,
          random,
          observe: (event) => {
            tell(cluster, owner, event);
          },
        };
        return createRelay(sabotage?.relay?.(ports, cluster) ?? ports, { owner, ...options, capture });
      },
    });
  });
}

function tell({ trace, assertions }: Cluster, owner: string, event: RelayEvent): void {
  assertions.relayTold(owner, event);
  trace.note(`  ${owner} ${event.kind}`, () => {
    if ('row' in event) return nameOf(event.row);
    return JSON.stringify(event, (_, value: unknown) => (value instanceof Error ? value.message : value));
  });
}
