import { Wakeup, isNightporterError, sleep, type ResumeToken } from '@nightporter/protocol';
import type { CheckpointSaver } from './checkpoint-saver.js';
import { OVER, type Over } from './database-calls.js';
import type { MissedRows } from './missed-rows.js';
import type { CaptureBatch, CaptureStream } from './ports.js';
import type { Repairs } from './repairs.js';
import type { SessionContext } from './session-context.js';
import type { Sweeper } from './sweeper.js';
import { anyOf, isOutage, limited, storeUnavailable } from './waiting.js';

/** A stream that answers an empty batch faster than this is asked again only after as long. */
const EMPTY_READ_MIN_MS = 5;

export interface FollowerParts {
  readonly saver: CheckpointSaver;
  readonly sweeper: Sweeper;
  readonly repairs: Repairs;
  readonly missed: MissedRows;
}

/**
 * Opens the stream, makes good what it cannot bring, and follows it.
 *
 * *Opening*: at the checkpoint. Where history is lost, a fresh stream is opened first, so that nothing can commit unseen
 * between the sweep and the stream. *Making good*: a sweep, after which tokens may be saved. *Following*: every batch is looked
 * up by one request, since its rows may have been published or changed long ago. A read that fails says nothing about what the
 * server has sent, so the stream is closed and opened again behind the last batch that arrived; if that is impossible it
 * is lost, and made good like a lost history.
 */
export class StreamFollower {
  readonly #context: SessionContext;
  readonly #parts: FollowerParts;
  #stream: CaptureStream | null = null;
  /** Everything up to here was delivered. Null when a fresh stream has not said yet where it stands. */
  #deliveredUpTo: ResumeToken | null = null;
  #failedReads = 0;
  #isFollowing = false;

  constructor(context: SessionContext, parts: FollowerParts) {
    this.#context = context;
    this.#parts = parts;
  }

  /** The outbox has been swept since the stream was last opened anew. */
  get isFollowing(): boolean {
    return this.#isFollowing;
  }

  /** Runs until the session is over. */
  async run(checkpoint: ResumeToken | null): Promise<void> {
    const { epoch, spawn, isOver } = this.#context;
    this.#deliveredUpTo = checkpoint;
    const opened = await this.#open();
    if (opened === OVER) return;
    const reason = checkpoint !== null && opened === 'fresh' ? 'history lost at the checkpoint' : null;
    if ((await this.#makeGood({ reason, inherited: epoch > 1 })) === OVER) return;
    spawn(this.#parts.sweeper.sweepRegularly());
    while (!isOver()) await this.#step();
  }

  /** Gives the stream back; takes at most `limitMs`. */
  async close(limitMs = this.#context.options.callMs): Promise<void> {
    const stream = this.#stream;
    this.#stream = null;
    if (stream !== null) await this.#giveBack(stream, limitMs);
  }

  async #giveBack(stream: CaptureStream, limitMs: number): Promise<void> {
    const { ports } = this.#context;
    const limit = { clock: ports.clock, limitMs, over: new Wakeup(), onLimit: storeUnavailable };
    try {
      await limited(() => stream.close(), limit);
    } catch (error) {
      ports.observe({ kind: 'database-unavailable', operation: 'capture.close', error });
    }
  }

  async #step(): Promise<void> {
    const { calls, lanes, room, over, ports, isOver } = this.#context;
    while (!(lanes.hasRoom && this.#parts.saver.tracker.hasRoom) && !isOver()) await anyOf(room, over);
    const stream = this.#stream;
    if (isOver() || stream === null) return;
    const readAtMs = ports.clock.now();
    let batch: CaptureBatch;
    try {
      batch = await calls.once(() => stream.read());
    } catch (error) {
      if (isOver()) return;
      if (!isOutage(error)) throw error;
      await this.#recover(error);
      return;
    }
    this.#failedReads = 0;
    await this.#take(batch, readAtMs);
  }

  async #take(batch: CaptureBatch, readAtMs: number): Promise<void> {
    const { ports, progress, over } = this.#context;
    const { saver, repairs, missed } = this.#parts;
    const nowMs = ports.clock.now();
    progress.readAtMs = progress.aheadAtMs = nowMs;
    progress.batchLagMs = batch.lagMs;
    if (batch.rows.length > 0) {
      progress.capturedAtMs = nowMs;
      progress.counts.captured += batch.rows.length;
      if ((await this.#offerRows(batch, nowMs)) === OVER) return;
    }
    if (batch.token !== null) saver.tracker.endBatch(batch.token);
    this.#deliveredUpTo = batch.token ?? batch.rows.at(-1)?.token ?? this.#deliveredUpTo;
    if (batch.disturbed) {
      await this.#makeGood({ reason: 'an outbox was dropped or renamed', inherited: false });
      return;
    }
    saver.touch({ idle: batch.rows.length === 0 });
    if (batch.rows.length > 0) return;
    const rows = missed.streamIsEmpty(readAtMs);
    if (rows > 0) repairs.add('rows that the stream did not bring', rows);
    if (nowMs - readAtMs < EMPTY_READ_MIN_MS) await sleep(ports.clock, EMPTY_READ_MIN_MS, over);
  }

  async #offerRows(batch: CaptureBatch, sightedAtMs: number): Promise<Over | null> {
    const { calls, lanes, ports, pump } = this.#context;
    const { saver, missed } = this.#parts;
    const references = batch.rows.map(({ row }) => row);
    const found = await calls.untilDone('reader.lookUp', () => ports.reader.lookUp(references));
    if (found === OVER) return OVER;
    const nowMs = ports.clock.now();
    for (const { row: captured, token } of batch.rows) {
      const delivery = saver.tracker.deliver(token);
      missed.broughtByStream(captured.eventId);
      const truth = found.get(captured.eventId) ?? 'missing';
      if (truth === 'archived') {
        delivery.settle();
        continue;
      }
      const row = truth === 'missing' ? captured : truth;
      const inOutbox = truth !== 'missing';
      lanes.offer({ row, sightedAtMs, delivery, inOutbox, lowest: false, inherited: false }, nowMs);
    }
    pump();
    return null;
  }

  /** Whether a token covers only what is settled or deferred is known again once a sweep is through. */
  async #makeGood({ reason, inherited }: { reason: string | null; inherited: boolean }): Promise<Over | null> {
    const { saver, sweeper, repairs, missed } = this.#parts;
    this.#isFollowing = false;
    saver.forbid();
    if (reason !== null) this.#context.lanes.forgetPublished();
    const rows = await sweeper.sweepUntilSettled({ inherited });
    if (rows === OVER) return OVER;
    if (reason !== null) {
      repairs.add(reason, rows);
      // What the regular sweep found meanwhile belongs to this repair.
      missed.clear();
    }
    this.#isFollowing = true;
    saver.allow();
    return null;
  }

  async #recover(error: unknown): Promise<void> {
    const { calls, ports, shard } = this.#context;
    const isLost = isCaptureLost(error);
    if (isLost) ports.observe({ kind: 'capture-lost', shard: shard.id, error });
    else ports.observe({ kind: 'database-unavailable', operation: 'capture.read', error });
    await this.close();
    this.#failedReads += 1;
    await calls.pause(this.#failedReads);
    if (isLost) this.#deliveredUpTo = null;
    const opened = await this.#open();
    if (opened === 'fresh') await this.#makeGood({ reason: 'stream lost', inherited: false });
  }

  /** Opens the stream behind what was delivered or, where that cannot be, a fresh one. */
  async #open(): Promise<'resumed' | 'fresh' | Over> {
    const { ports, shard } = this.#context;
    if (this.#deliveredUpTo !== null) {
      const resumed = await this.#openAfter(this.#deliveredUpTo);
      if (resumed !== 'lost') return resumed === OVER ? OVER : 'resumed';
      this.#deliveredUpTo = null;
    }
    const opened = await this.#openAfter(null);
    if (opened === OVER) return OVER;
    this.#parts.saver.startAnew();
    this.#parts.missed.clear();
    ports.observe({ kind: 'capture-opened', shard: shard.id, resumed: false });
    return 'fresh';
  }

  async #openAfter(after: ResumeToken | null): Promise<'opened' | 'lost' | Over> {
    const { calls, ports, shard, spawn, options } = this.#context;
    const request = { after, slots: shard.slots };
    const onLate = (stream: CaptureStream): void => {
      spawn(this.#giveBack(stream, options.callMs));
    };
    const isAnswer = (error: unknown): boolean => after !== null && isCaptureLost(error);
    try {
      const stream = await calls.untilDone('capture.open', () => ports.capture.open(request), { isAnswer, onLate });
      if (stream === OVER) return OVER;
      this.#stream = stream;
    } catch (error) {
      if (!isAnswer(error)) throw error;
      ports.observe({ kind: 'capture-lost', shard: shard.id, error });
      return 'lost';
    }
    if (after !== null) ports.observe({ kind: 'capture-opened', shard: shard.id, resumed: true });
    return 'opened';
  }
}

function isCaptureLost(error: unknown): boolean {
  return isNightporterError(error, 'NP_CAPTURE_LOST');
}
