import { MESSAGE_PROPERTIES, encodeEnvelope, envelopeOf } from '@nightporter/contracts';
import { eventId } from '@nightporter/protocol';
import type { Cluster, SimulatedGroup } from './cluster.js';
import { CORRUPT_COPY } from './group-watch.js';
import { deadLetterTopic } from './layout.js';
import type { SeededRandom } from './random.js';
import type { SimulatedProcess } from './simulated-process.js';

interface Processes {
  readonly relays: readonly SimulatedProcess[];
  readonly workers: readonly SimulatedProcess[];
}

/** Starts everything that the knobs of a history allow to go wrong. All of it ends with the faults. */
export function startChaos(cluster: Cluster, processes: Processes): void {
  const random = cluster.random.fork();
  disturbProcesses(cluster, processes, random);
  disturbBroker(cluster, random);
  disturbDatabase(cluster, random);
  if (cluster.knobs.operatorPauses) pauseRelays(cluster, cluster.random.fork());
  if (cluster.knobs.corruptCopies) sendCorruptCopies(cluster, cluster.random.fork());
  if (cluster.knobs.topicAway) sendTopicAway(cluster, processes, random);
}

/** Ends the faults: what was broken works again, and nothing new breaks. */
export function endChaos(cluster: Cluster): void {
  cluster.trace.note('---- the faults end');
  Object.assign(cluster.faults, { active: false, databaseFaults: 0, brokerFaults: 0, crashAtCalls: 0 });
  cluster.troubles.brokenTopics.clear();
  Object.assign(cluster.troubles, { throttled: false, awayTopic: null });
  if (cluster.broker.down) cluster.broker.restart();
  for (const topic of [null, ...topicsOf(cluster)]) cluster.database.controls.resume(topic);
}

/** Operators pause a topic or everything, and take that back a while later. */
function pauseRelays(cluster: Cluster, random: SeededRandom): void {
  const { assertions, database, schedule, trace } = cluster;
  repeat(cluster, random, { isOn: true, fromMs: 1_000, toMs: 8_000 }, () => {
    const topic = random.chance(0.5) ? null : random.pick(topicsOf(cluster));
    trace.note('operator pauses', () => topic ?? 'everything');
    assertions.paused(topic);
    database.controls.pause(topic);
    schedule.after(random.between(200, 5_000), () => {
      trace.note('operator resumes', () => topic ?? 'everything');
      database.controls.resume(topic);
    });
  });
}

function topicsOf({ groups }: Cluster): readonly [string, ...string[]] {
  const [first = '', ...others] = new Set(groups.flatMap((group) => group.topics));
  return [first, ...others];
}

function disturbProcesses(cluster: Cluster, { relays, workers }: Processes, random: SeededRandom): void {
  const { knobs } = cluster;
  const one = (processes: readonly SimulatedProcess[]): SimulatedProcess | undefined =>
    processes[random.integer(processes.length)];
  const often = (isOn: boolean, fromMs: number, toMs: number, run: () => void): void => {
    repeat(cluster, random, { isOn, fromMs, toMs }, run);
  };
  often(knobs.relayCrashes, 500, 8_000, () => one(relays)?.crash('by chance'));
  often(knobs.relayPauses, 500, 8_000, () => one(relays)?.pause(random.between(100, 9_000)));
  often(knobs.relayRestarts, 1_000, 8_000, () => one(relays)?.stop('restart'));
  // One leaves for up to six seconds, and joins again as another.
  often(knobs.sharing, 1_000, 6_000, () => one(relays)?.stop('restart'));
  often(knobs.workerCrashes, 300, 5_000, () => one(workers)?.crash('by chance'));
  often(knobs.workerPauses, 300, 5_000, () => one(workers)?.pause(random.between(100, 6_000)));
  often(knobs.workerRestarts, 1_000, 8_000, () => one(workers)?.stop('restart'));
}

function disturbBroker(cluster: Cluster, random: SeededRandom): void {
  const { knobs, broker, schedule, trace, troubles } = cluster;
  const often = (isOn: boolean, fromMs: number, toMs: number, run: () => void): void => {
    repeat(cluster, random, { isOn, fromMs, toMs }, run);
  };
  const oneTopic = (): string => random.pick(topicsOf(cluster));
  often(knobs.brokerOutages || knobs.brokerRestarts, 2_000, 9_000, () => {
    trace.note('the broker goes down');
    broker.down = true;
    schedule.after(random.between(100, 2_500), () => {
      trace.note('the broker is back');
      if (knobs.brokerRestarts) broker.restart();
      broker.down = false;
    });
  });
  often(true, 1_000, 7_000, () => {
    for (const topic of broker.topics.values()) topic.persist();
  });
  often(knobs.queueChanges, 3_000, 12_000, () => {
    const queues = random.pick([2, 3, 4]);
    const topic = oneTopic();
    trace.note('queues change', () => `${topic} ${queues}`);
    broker.topic(topic).changeQueueCount(queues);
  });
  often(knobs.topicFailures, 1_500, 8_000, () => {
    const topic = oneTopic();
    trace.note('topic breaks', () => topic);
    troubles.brokenTopics.add(topic);
    schedule.after(random.between(300, 4_000), () => troubles.brokenTopics.delete(topic));
  });
  often(knobs.throttling, 1_000, 6_000, () => {
    troubles.throttled = true;
    schedule.after(random.between(100, 1_500), () => {
      troubles.throttled = false;
    });
  });
  often(knobs.givenUpMessages, 500, 3_000, () => {
    const { name, topics: own } = random.pick(cluster.groups as [SimulatedGroup, ...SimulatedGroup[]]);
    const topic = own[random.integer(own.length)] ?? '';
    const lost = broker.topic(topic).giveUp(name, random.pick([1, 1, 3]));
    // The broker keeps what it has delivered too often; what has expired is gone.
    if (random.chance(0.5)) for (const message of lost) broker.topic(deadLetterTopic(name)).append(message);
    trace.note('messages are given up', () => `${name} ${topic} ${lost.map(({ messageId }) => messageId).join(' ')}`);
  });
  let garbage = 0;
  often(knobs.garbage, 2_000, 9_000, () => {
    garbage += 1;
    const message = { messageId: `garbage-${garbage}`, messageGroup: `g${garbage}`, properties: {} };
    broker
      .topic(oneTopic())
      .append({ ...message, body: new TextEncoder().encode(random.pick(['{', '{}', '', '[1]'])) });
  });
}

/** Alters the data of an event on its way, and promises the digest of what was written: before the event itself is sent, or after. */
function sendCorruptCopies(cluster: Cluster, random: SeededRandom): void {
  const { assertions, broker, trace } = cluster;
  let copies = 0;
  repeat(cluster, random, { isOn: true, fromMs: 200, toMs: 1_500 }, () => {
    const row = assertions.committed[assertions.committed.length - 1 - random.integer(6)];
    if (row === undefined) return;
    copies += 1;
    trace.note('a corrupt copy lands', () => `${row.eventId} corrupt-${copies}`);
    broker.topic(row.topic).append({
      messageId: `${CORRUPT_COPY}${copies}`,
      messageGroup: row.eventKey,
      body: encodeEnvelope({ ...envelopeOf(row, 'original'), data: { altered: copies } }),
      properties: { [MESSAGE_PROPERTIES.form]: 'original', [MESSAGE_PROPERTIES.digest]: row.digest },
    });
  });
}

/** The relay that takes over meanwhile finds rows that it cannot send in its first sweep. */
function sendTopicAway(
  { groups, schedule, trace, troubles }: Cluster,
  { relays }: Processes,
  random: SeededRandom,
): void {
  const topics = [...new Set(groups.flatMap((group) => group.topics))];
  const topic = random.pick([...topics] as [string, ...string[]]);
  const atMs = random.between(500, 4_000);
  schedule.after(atMs, () => {
    trace.note('topic goes away', () => topic);
    troubles.awayTopic = topic;
  });
  const relay = relays[random.integer(relays.length)];
  schedule.after(atMs + random.between(500, 4_000), () => relay?.stop('restart'));
  if (random.chance(0.5)) return;
  schedule.after(atMs + random.between(3_000, 12_000), () => {
    trace.note('topic is back', () => topic);
    troubles.awayTopic = null;
  });
}

function disturbDatabase(cluster: Cluster, random: SeededRandom): void {
  const { knobs, database, trace, groups } = cluster;
  const { oplog } = database.outbox;
  const often = (isOn: boolean, fromMs: number, toMs: number, run: () => void): void => {
    repeat(cluster, random, { isOn, fromMs, toMs }, run);
  };
  often(knobs.prunedHistory, 300, 3_000, () => {
    trace.note('history is pruned');
    oplog.prune(random.integer(8));
  });
  often(knobs.brokenStreams, 500, 5_000, () => {
    trace.note('streams break');
    oplog.breakStreams();
  });
  often(knobs.disturbances, 1_000, 8_000, () => {
    trace.note('a collection is dropped under the stream');
    oplog.append({ kind: 'drop' });
  });
  often(knobs.inboxExpiry, 500, 3_000, () => {
    for (const group of groups) group.memory.expireInbox(500);
  });
  const { retention } = knobs;
  if (retention !== 'none')
    often(true, 1_500, 2_500, () => {
      retire(cluster, random, retention);
    });
}

/** Takes published rows away that every group has passed. */
function retire(cluster: Cluster, random: SeededRandom, how: 'archive' | 'delete'): void {
  const { database, groups, schedule, trace } = cluster;
  for (const row of database.outbox.rows()) {
    if (row.publishedAtMs === null || schedule.nowMs - row.publishedAtMs < 1_500) continue;
    const readers = groups.filter((group) => group.topics.includes(row.topic));
    const passed = readers.every(
      ({ memory }) => memory.positionOf(row.aggregate).position.version >= row.aggregateVersion,
    );
    if (!passed) continue;
    schedule.after(random.between(0, 800), () => {
      trace.note(`retention: ${how}`, () => row.eventId);
      database.outbox.retire(eventId(row.eventId), how);
    });
  }
}

function repeat(
  { schedule, faults }: Cluster,
  random: SeededRandom,
  { isOn, fromMs, toMs }: { isOn: boolean; fromMs: number; toMs: number },
  run: () => void,
): void {
  if (!isOn) return;
  const next = (): void => {
    schedule.after(random.between(fromMs, toMs), () => {
      if (!faults.active) return;
      run();
      next();
    });
  };
  next();
}
