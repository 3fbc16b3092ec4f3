import type { OutboxRow } from '@nightporter/contracts';
import { PublishLanes, Wakeup, type Epoch, type LanePolicy, type TokenBucket } from '@nightporter/protocol';
import { CheckpointSaver } from './checkpoint-saver.js';
import type { Progress } from './counts.js';
import { DatabaseCalls, OVER, type Over } from './database-calls.js';
import { LaneReader } from './lane-reader.js';
import { MarkWriter } from './mark-writer.js';
import { MissedRows } from './missed-rows.js';
import { farewellMs, type RelayOptions, type Shard } from './options.js';
import type { RelayPorts } from './relay.js';
import { PauseWatch } from './pause-watch.js';
import { Poller } from './poller.js';
import { Repairs } from './repairs.js';
import { Sender } from './sender.js';
import type { SessionContext, SessionEnd } from './session-context.js';
import type { ShardSnapshot, ShardState } from './snapshot.js';
import { StreamFollower } from './stream-follower.js';
import { Sweeper } from './sweeper.js';
import { waitUntil } from './waiting.js';

export interface SessionDetails {
  readonly ports: RelayPorts;
  readonly options: RelayOptions;
  readonly shard: Shard;
  readonly epoch: Epoch;
  /** Until when the lease may be acted on, by our clock. */
  readonly deadlineMs: number;
  readonly progress: Progress;
  readonly rate: TokenBucket | null;
}

/**
 * One shard, held in one epoch: claims the checkpoint, opens the stream, sweeps, follows.
 *
 * *Working* while the lease lasts. *Suspended* when it could not be renewed in time: nothing is sent, and everything else
 * goes on; the same epoch renewed takes it up again, since no other owner can have been in between. *Draining* on `drain()`.
 * *Over* when it has drained, when the lease went to another epoch, or when the checkpoint says that it did.
 */
export class Session {
  readonly over = new Wakeup();
  readonly #details: SessionDetails;
  readonly #context: SessionContext;
  readonly #saver: CheckpointSaver;
  readonly #marks: MarkWriter;
  readonly #sender: Sender;
  readonly #reader: LaneReader;
  readonly #sweeper: Sweeper;
  readonly #follower: StreamFollower;
  /** Null when the stream is followed. */
  readonly #poller: Poller | null;
  readonly #pauses: PauseWatch;
  #deadlineMs: number;
  #isDraining = false;
  #isStarting = true;
  #end: SessionEnd = 'lost';
  #failure: { readonly error: unknown } | null = null;
  #timer: { readonly atMs: number; readonly cancel: () => void } | null = null;

  constructor(details: SessionDetails) {
    this.#details = details;
    this.#deadlineMs = details.deadlineMs;
    details.progress.beginSession(details.ports.clock.now());
    this.#context = this.#createContext();
    const onSettled = (): void => {
      this.#saver.touch({ idle: false });
    };
    this.#saver = new CheckpointSaver(this.#context);
    this.#marks = new MarkWriter(this.#context, onSettled);
    this.#sender = new Sender(this.#context, this.#marks);
    this.#reader = new LaneReader(this.#context, onSettled);
    this.#pauses = new PauseWatch(this.#context, onSettled);
    const missed = new MissedRows(details.options.streamGraceMs);
    this.#sweeper = new Sweeper(this.#context, missed);
    const repairs = new Repairs(this.#context);
    this.#poller = details.options.capture === 'polling' ? new Poller(this.#context, this.#sweeper) : null;
    this.#follower = new StreamFollower(this.#context, { saver: this.#saver, sweeper: this.#sweeper, repairs, missed });
  }

  isOver(): boolean {
    return this.over.rungForGood;
  }

  get epoch(): Epoch {
    return this.#details.epoch;
  }

  /** Works until the session is over. Rejects when an invariant is broken. */
  async run(): Promise<SessionEnd> {
    this.#spawn(this.#work());
    await this.over.wait();
    await this.#follower.close(farewellMs(this.#details.options));
    if (this.#failure !== null) throw this.#failure.error;
    return this.#end;
  }

  /** The lease was renewed in this epoch. */
  extend(deadlineMs: number): void {
    this.#deadlineMs = deadlineMs;
    this.#pump();
  }

  /** The lease is gone: nothing is sent any more, and what is in flight is left to the next owner to send again. */
  lose(): void {
    this.#finish('lost');
  }

  /** Stops sending, waits for what is in flight and its marks, saves the checkpoint, and is over by `untilMs`. Again: only to be over earlier. */
  async drain(untilMs: number): Promise<void> {
    const { over } = this;
    const { clock } = this.#details.ports;
    const isOver = (): boolean => over.rungForGood;
    if (this.#isDraining) {
      await waitUntil(clock, { untilMs, isDone: isOver, wakeups: [over] });
      this.#finish('drained');
      return;
    }
    this.#isDraining = true;
    const noneInFlight = (): boolean => isOver() || this.#context.lanes.sendsInFlight === 0;
    await waitUntil(clock, { untilMs, isDone: noneInFlight, wakeups: [this.#sender.ended, over] });
    const allMarked = (): boolean => isOver() || this.#marks.isEmpty;
    await waitUntil(clock, { untilMs, isDone: allMarked, wakeups: [this.#marks.emptied, over] });
    let isSaved = false;
    const saved = new Wakeup();
    const save = async (): Promise<void> => {
      await this.#saver.saveLast();
      isSaved = true;
      saved.ring();
    };
    this.#spawn(save());
    await waitUntil(clock, { untilMs, isDone: () => isOver() || isSaved, wakeups: [saved, over] });
    this.#finish('drained');
  }

  snapshot(): ShardSnapshot {
    const { lanes, progress, shard, epoch, options } = this.#context;
    const nowMs = this.#details.ports.clock.now();
    const since = (atMs: number | null): number | null => (atMs === null ? null : nowMs - atMs);
    return {
      shard: shard.id,
      state: this.#state(nowMs),
      epoch,
      windowMax: options.windowMax,
      sendsInFlight: lanes.sendsInFlight,
      rowsInMemory: lanes.rowsInMemory,
      lanesHeld: lanes.lanesHeld,
      topicsClosed: lanes.topicsClosed,
      paused: this.#pauses.pause,
      tracked: this.#saver.tracker.size,
      checkpointSeq: this.#saver.savedSeq,
      leaseFailuresInARow: progress.leaseFailuresInARow,
      sinceLeaseAnswerMs: since(progress.leaseAnsweredAtMs),
      otherMap: null,
      sinceAheadMs: since(progress.aheadAtMs),
      unmarkedForMs: progress.unmarkedForMs(nowMs),
      uncoveredForMs: since(this.#saver.uncoveredSinceMs),
      lagMs: progress.lagMs(nowMs),
      publishesPerSecond: progress.publishRate.perSecond(nowMs),
      repairsByReason: Object.fromEntries(progress.repairsByReason),
      sinceReadMs: since(progress.readAtMs),
      sinceCaptureMs: since(progress.capturedAtMs),
      sinceMarkMs: since(progress.markedAtMs),
      sinceCheckpointMs: since(progress.checkpointAtMs),
      counts: { ...progress.counts },
    };
  }

  #state(nowMs: number): ShardState {
    if (this.#isDraining || this.over.rungForGood) return 'draining';
    if (nowMs >= this.#deadlineMs) return 'suspended';
    if (this.#isStarting) return 'starting';
    if (this.#poller !== null) return this.#poller.isFollowing ? 'polling' : 'sweeping';
    return this.#follower.isFollowing ? 'following' : 'sweeping';
  }

  async #work(): Promise<void> {
    const { ports, shard, epoch, progress } = this.#details;
    const claim = await this.#context.calls.untilDone('checkpoints.claim', () =>
      ports.checkpoints.claim({ shard: shard.id, epoch }),
    );
    if (claim === OVER) return;
    if (claim.kind === 'fenced') {
      progress.counts.fenced += 1;
      this.#finish('fenced');
      return;
    }
    if ((await this.#pauses.read()) === OVER) return;
    this.#spawn(this.#pauses.watch());
    if ((await this.#takeClaimsBack()) === OVER) return;
    this.#isStarting = false;
    if (this.#poller !== null) await this.#poller.run();
    else await this.#follower.run(claim.token);
  }

  /** Claims of earlier owners of the lease would hold up their aggregates until they are too old. */
  async #takeClaimsBack(): Promise<Over | null> {
    const { ports, shard, options } = this.#details;
    const request = { slots: shard.slots, relay: options.owner };
    const rows = await this.#context.calls.untilDone('polling.takeBack', () => ports.polling.takeBack(request));
    if (rows === OVER) return OVER;
    if (rows > 0) ports.observe({ kind: 'claims-taken-back', shard: shard.id, rows });
    return null;
  }

  readonly #mayBegin = (): boolean =>
    !this.#isDraining && !this.over.rungForGood && this.#details.ports.clock.now() < this.#deadlineMs;

  readonly #pump = (): void => {
    if (this.over.rungForGood) return;
    const { lanes, progress, room } = this.#context;
    this.#sender.begin(this.#mayBegin);
    this.#beginClaims();
    this.#reader.wake();
    for (let item = lanes.nextToRecord(); item !== null; item = lanes.nextToRecord()) {
      this.#marks.push({ kind: 'unanswered', item, row: item.row });
    }
    if (lanes.takeSweepWanted()) this.#sweeper.request();
    progress.rowsInMemory(lanes.rowsInMemory, this.#details.ports.clock.now());
    if (lanes.hasRoom) room.ring();
    this.#armTimer(lanes.nextDueAtMs);
  };

  #beginClaims(): void {
    const { lanes } = this.#context;
    while (this.#mayBegin()) {
      const item = lanes.nextToClaim(this.#details.ports.clock.now());
      if (item === null) return;
      this.#marks.push({ kind: 'claimed', item, row: item.row });
    }
  }

  #armTimer(atMs: number | null): void {
    if (atMs === (this.#timer?.atMs ?? null)) return;
    this.#timer?.cancel();
    this.#timer = null;
    if (atMs === null) return;
    const { clock } = this.#details.ports;
    const cancel = clock.after(Math.max(0, atMs - clock.now()), () => {
      this.#timer = null;
      this.#context.lanes.wake(clock.now());
      this.#pump();
    });
    this.#timer = { atMs, cancel };
  }

  readonly #spawn = (work: Promise<void>): void => {
    work.catch((error: unknown) => {
      this.#failure ??= { error };
      this.#finish('lost');
    });
  };

  readonly #finish = (end: SessionEnd): void => {
    if (this.over.rungForGood) return;
    this.#end = end;
    this.#timer?.cancel();
    this.#timer = null;
    this.#sender.close();
    this.#marks.close();
    this.#saver.close();
    this.over.ringForGood();
  };

  #createContext(): SessionContext {
    const { ports, options, shard, epoch, progress, rate } = this.#details;
    const { clock, random } = ports;
    const onFailure = (operation: string, error: unknown): void => {
      progress.counts.databaseFailures += 1;
      ports.observe({ kind: 'database-unavailable', operation, error });
    };
    return {
      ports,
      options,
      shard,
      epoch,
      progress,
      rate,
      lanes: new PublishLanes<OutboxRow>(lanePolicy(options), random),
      calls: new DatabaseCalls({ clock, random, options, over: this.over, onFailure }),
      over: this.over,
      isOver: () => this.over.rungForGood,
      room: new Wakeup(),
      pump: this.#pump,
      spawn: this.#spawn,
      finish: this.#finish,
    };
  }
}

function lanePolicy(options: RelayOptions): LanePolicy {
  return {
    ...options,
    claims: options.capture === 'polling',
    heldReadEveryMaxMs: options.sweepEveryMs,
    transientBackoff: { firstMs: options.transientDelayMs, maxMs: options.transientDelayMaxMs },
    topicBackoff: { firstMs: options.topicDelayMs, maxMs: options.topicDelayMaxMs },
    failedBackoff: { firstMs: options.failedDelayMs, maxMs: options.failedDelayMaxMs },
  };
}
