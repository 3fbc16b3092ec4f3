import type { SeededRandom } from './random.js';

/** What may go wrong in a history, and how it is laid out. All of it is drawn from the seed. */
export interface Knobs {
  /** Probability that a call to the database, or to the broker, is lost, loses its answer, or executes late. */
  readonly databaseFaults: number;
  readonly brokerFaults: number;
  /** How long a process waits for an answer before it gives up. */
  readonly timeOutMs: number;
  /** How many times slower than usual every answer is. */
  readonly slowness: number;
  /** Probability that a process dies at a call: before it is sent, while it is on its way, or before its answer is read. */
  readonly crashAtCalls: number;
  readonly relayCrashes: boolean;
  readonly relayPauses: boolean;
  readonly relayRestarts: boolean;
  readonly workerCrashes: boolean;
  readonly workerPauses: boolean;
  readonly workerRestarts: boolean;
  readonly brokerOutages: boolean;
  /** Restarts with offsets that go back. */
  readonly brokerRestarts: boolean;
  /** Probability that the broker loses a message that it has taken. */
  readonly lostMessages: number;
  /** The broker gives messages up for one group: dead-lettered, expired, or an offset that moved past them. */
  readonly givenUpMessages: boolean;
  readonly queueChanges: boolean;
  readonly prunedHistory: boolean;
  /** An overtaken stream skips without a word. */
  readonly silentSkips: boolean;
  readonly brokenStreams: boolean;
  readonly disturbances: boolean;
  readonly permanentFailures: boolean;
  readonly topicFailures: boolean;
  readonly throttling: boolean;
  readonly poison: boolean;
  /** Handlers that kill their process, and handlers that never end. */
  readonly crashPoison: boolean;
  readonly hangPoison: boolean;
  readonly relayOperators: boolean;
  readonly groupOperators: boolean;
  /** Operators resolve every dead row and dead letter in the end. */
  readonly resolveAll: boolean;
  readonly inboxExpiry: boolean;
  readonly retention: 'none' | 'archive' | 'delete';
  /** One group starts above version 0 for some aggregates. */
  readonly startVersions: boolean;
  /** Handlers of one group write events of their own. */
  readonly emits: boolean;
  /** Handlers of all aggregates write one document. */
  readonly sharedDocument: boolean;
  readonly garbage: boolean;
  /** Workers put on record what they are about to run. */
  readonly startedRecords: boolean;
  readonly twoShards: boolean;
  /** Aggregates share a message group. */
  readonly sharedMessageGroup: boolean;
  /** Operators pause a topic, or everything, for a while. */
  readonly operatorPauses: boolean;
  /** One relay polls, the other follows the stream: every take-over is a change between the two. */
  readonly polling: boolean;
  readonly aggregates: number;
  readonly events: number;
  /** One topic takes nothing for long, maybe until the faults end, and a relay is restarted meanwhile. */
  readonly topicAway: boolean;
  /** Copies of committed events reach the topics, altered under way. */
  readonly corruptCopies: boolean;
  /** Three relays share four shards, each its fair part; they join and leave. */
  readonly sharing: boolean;
  /** One group comes when there are events already: registered from the beginning, while the broker gives it what is new. */
  readonly lateGroup: boolean;
}

/** Histories range from nearly calm to everything at once: each kind of trouble is easier to understand without the others. */
export function drawKnobs(random: SeededRandom): Knobs {
  const density = random.pick([0.12, 0.3, 0.55]);
  const on = (): boolean => random.chance(density);
  const rate = (...rates: [number, ...number[]]): number => (on() ? random.pick(rates) : 0);
  return {
    databaseFaults: rate(0.02, 0.06, 0.12),
    brokerFaults: rate(0.03, 0.08, 0.15),
    timeOutMs: random.pick([300, 300, 1_000, 3_000]),
    slowness: random.pick([1, 1, 4, 15]),
    crashAtCalls: rate(0.003, 0.01),
    relayCrashes: on(),
    relayPauses: on(),
    relayRestarts: on(),
    workerCrashes: on(),
    workerPauses: on(),
    workerRestarts: on(),
    brokerOutages: on(),
    brokerRestarts: on(),
    queueChanges: on() && random.chance(0.5),
    prunedHistory: on(),
    silentSkips: random.chance(0.5),
    brokenStreams: on(),
    disturbances: on(),
    permanentFailures: on(),
    topicFailures: on() && random.chance(0.6),
    throttling: on(),
    poison: on(),
    crashPoison: on(),
    hangPoison: on() && random.chance(0.6),
    relayOperators: on(),
    groupOperators: on(),
    resolveAll: random.chance(0.6),
    inboxExpiry: on(),
    retention: on() ? random.pick(['archive', 'delete']) : 'none',
    startVersions: on(),
    emits: on(),
    sharedDocument: on() && random.chance(0.5),
    garbage: on() && random.chance(0.5),
    startedRecords: random.chance(0.7),
    twoShards: random.chance(0.3),
    sharedMessageGroup: random.chance(0.2),
    aggregates: random.pick([1, 2, 3, 5]),
    events: random.pick([4, 10, 30, 80]),
    operatorPauses: on(),
    lostMessages: rate(0.02, 0.1, 0.4),
    givenUpMessages: on(),
    polling: random.chance(0.4),
    topicAway: on(),
    corruptCopies: on(),
    sharing: random.chance(0.35),
    lateGroup: random.chance(0.4),
  };
}

/** The calm: nothing goes wrong. Tests switch on what they look at. */
export const NO_FAULTS: Knobs = {
  databaseFaults: 0,
  brokerFaults: 0,
  timeOutMs: 1_000,
  slowness: 1,
  crashAtCalls: 0,
  relayCrashes: false,
  relayPauses: false,
  relayRestarts: false,
  workerCrashes: false,
  workerPauses: false,
  workerRestarts: false,
  brokerOutages: false,
  brokerRestarts: false,
  lostMessages: 0,
  givenUpMessages: false,
  queueChanges: false,
  prunedHistory: false,
  silentSkips: false,
  brokenStreams: false,
  disturbances: false,
  permanentFailures: false,
  topicFailures: false,
  throttling: false,
  poison: false,
  crashPoison: false,
  hangPoison: false,
  relayOperators: false,
  groupOperators: false,
  resolveAll: true,
  inboxExpiry: false,
  retention: 'none',
  startVersions: false,
  emits: false,
  sharedDocument: false,
  garbage: false,
  startedRecords: true,
  twoShards: false,
  sharedMessageGroup: false,
  operatorPauses: false,
  polling: false,
  aggregates: 3,
  events: 20,
  topicAway: false,
  corruptCopies: false,
  sharing: false,
  lateGroup: false,
};
