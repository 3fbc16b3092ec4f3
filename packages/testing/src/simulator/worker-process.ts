import {
  memoryEmitter,
  memoryGroupStores,
  memoryProducer,
  memorySubscriber,
  type MemorySession,
} from '../memory/index.js';
import {
  createConsumer,
  type ConsumerEvent,
  type ConsumerPorts,
  type EventHandler,
  type HandlerContext,
} from '@nightporter/consumer';
import { canonicalJson, type EventEnvelope } from '@nightporter/contracts';
import { groupId, sleep } from '@nightporter/protocol';
import type { Cluster, SimulatedGroup } from './cluster.js';
import { nameOf } from './assertions.js';
import { EMITTED, deadLetterTopic } from './layout.js';
import type { HandlerPlan } from './plans.js';
import type { Sabotage } from './sabotage.js';
import { SimulatedProcess, type Life } from './simulated-process.js';

function drawConsumerOptions({ random }: Cluster): Omit<Parameters<typeof createConsumer>[1], 'group' | 'handlers'> {
  return {
    receiveMax: random.pick([1, 3, 6, 32]),
    receiveLoops: random.pick([1, 2]),
    invisibleMs: 2_000,
    retryScheduleMs: [200, 400],
    attemptsMax: 3,
    retryConcurrency: random.pick([1, 4]),
    retryPollMs: 300,
    claimMs: 1_500,
    handlerMs: 700,
    transactionMs: random.pick([20, 500]),
    scanEveryMs: 1_500,
    scanAgeMs: 1_000,
    scanMax: random.pick([1, 100]),
    conflictFirstMs: 5,
    conflictMaxMs: 100,
    pauseFirstMs: 50,
    pauseMaxMs: 1_000,
    hardshipsMax: random.pick([2, 10]),
    deliveriesTrusted: random.pick([1, 2]),
    drainMs: 3_000,
    ledgerEveryMs: random.pick([500, 2_500]),
    ledgerLagMs: random.pick([1, 500]),
    ledgerBacklogLagMs: random.pick([1, 3_000]),
    ledgerOverlapMs: random.pick([1, 2_000]),
    ledgerPageMax: random.pick([1, 4, 100]),
    ledgerBatchMax: random.pick([1, 3, 20]),
    ledgerClaimMs: 2_000,
    brokerDeadLettersEveryMs: random.pick([500, 3_000]),
    gapWaitMs: random.pick([1, 1_000]),
    gapEveryMs: 800,
    gapMax: random.pick([1, 100]),
    catchUpMax: random.pick([1, 2, 5, 64]),
  };
}

/** Two workers per group. */
export function createWorkerProcesses(cluster: Cluster, sabotage: Sabotage | null): readonly SimulatedProcess[] {
  const options = drawConsumerOptions(cluster);
  return cluster.groups.flatMap((group) =>
    ['a', 'b'].map(
      (letter) =>
        new SimulatedProcess({
          name: `${group.name}${letter}`,
          cluster,
          restartMsMax: 1_500,
          boot: (life) => {
            const ports = portsOf(cluster, group, life);
            return createConsumer(sabotage?.consumer?.(ports, cluster) ?? ports, {
              ...options,
              group: groupId(group.name),
              handlers: { ThingHappened: handlerOf(cluster, group, life) },
              read: (envelope) =>
                envelope.eventVersion > 1
                  ? { kind: 'unsupported', reason: `version ${envelope.eventVersion}` }
                  : { kind: 'event', envelope },
            });
          },
        }),
    ),
  );
}

function portsOf(cluster: Cluster, group: SimulatedGroup, life: Life): ConsumerPorts<MemorySession> {
  const { owner, clock, random, network } = life;
  const { gaps, started, store, parked } = memoryGroupStores(group.memory, network);
  return {
    store,
    parked,
    ledgerSweep: { gaps, producers: [memoryProducer(cluster.database, group.name, network)] },
    ...(cluster.knobs.startedRecords ? { started } : {}),
    subscribers: group.topics.map((topic) => memorySubscriber(cluster.broker, network, { group: group.name, topic })),
    brokerDeadLetters: memorySubscriber(cluster.broker, network, {
      group: group.name,
      topic: deadLetterTopic(group.name),
    }),
    emitter: memoryEmitter(EMITTED),
    clock,
    random,
    observe: (event) => {
      tell(cluster, owner, event);
    },
  };
}

function handlerOf(cluster: Cluster, group: SimulatedGroup, life: Life): EventHandler<MemorySession> {
  return async (context) => {
    const { event, session, attempt } = context;
    const plan = cluster.plans.handler(event.eventId, group.name);
    cluster.trace.note(`  ${life.owner} handler`, () => `${nameOf(event)} attempt ${attempt}`);
    checkFaithful(cluster, group, event);
    await sleep(life.clock, life.random.between(0.5, 10) * (life.random.chance(0.05) ? 30 : 1));
    if (plan.crashes > 0) {
      plan.crashes -= 1;
      life.crash();
    }
    if (plan.hangs > 0) {
      plan.hangs -= 1;
      await new Promise(() => undefined);
    }
    await session.effect(event.eventId);
    if (cluster.knobs.sharedDocument) await session.write('shared', event.eventId);
    if (cluster.knobs.emits && group.name === EMITTED.by) await emitFollowUp(context);
    failAsPlanned(plan);
  };
}

/** Last of all, when everything is written: nothing of it may remain. */
function failAsPlanned(plan: HandlerPlan): void {
  if (plan.failures === 0) return;
  plan.failures -= 1;
  throw new Error('poison');
}

async function emitFollowUp({ event, emit }: HandlerContext<MemorySession>): Promise<void> {
  const { aggregateType } = EMITTED;
  await emit({
    aggregateType,
    aggregateId: event.aggregateId,
    eventType: 'ThingHappened',
    payload: { of: event.eventId },
  });
}

function checkFaithful(cluster: Cluster, group: SimulatedGroup, event: EventEnvelope): void {
  const row = cluster.assertions.rowOf(event.eventId);
  if (row !== undefined && canonicalJson(row.payload) === canonicalJson(event.data)) return;
  cluster.report('I13 faithful', `${group.name}: ${nameOf(event)} is not what was written`);
}

function tell({ trace }: Cluster, owner: string, event: ConsumerEvent): void {
  trace.note(`  ${owner} ${event.kind}`, () =>
    JSON.stringify(event, (key, value: unknown) => {
      if (value instanceof Error) return value.message;
      return key === 'event' && 'event' in event && event.event !== null ? nameOf(event.event.envelope) : value;
    }),
  );
}
