/**
 * Sends what is waiting, several at once, beside the consumer and outside of any transaction.
 *
 *   claim (counted) ──▶ send ──▶ settle: sent, later again, or dead
 *
 * A worker that dies between sending and settling leaves a claim that runs out; then it is sent again, with the same key. While the
 * database is away, what was sent is settled as soon as it is back, and nothing new is claimed.
 */
import { Wakeup, backoffMs, isNightporterError, sleep, type Clock, type Random } from '@nightporter/protocol';
import type { Logger } from '@nightporter/runtime';
import type { Companion } from '@nightporter/worker';
import type { Channel } from '../domain/notice.js';
import { ChannelHealth } from './channel-health.js';
import { decideDelivery, reasonOf } from './decide.js';
import { tellDelivery, type DeliveryMetrics } from './metrics.js';
import type {
  ClaimedNotification,
  DeliveryQueue,
  DeliveryVerdict,
  QueueFigures,
  SendOutcome,
  Sender,
} from './ports.js';

export interface DeliveryOptions {
  readonly queue: DeliveryQueue;
  readonly senders: Partial<Readonly<Record<Channel, Sender>>>;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  /** Notifications in hand at once. */
  readonly deliveriesMax: number;
  readonly pollMs: number;
  /** How long a claim lasts; longer than a send and the writing of its result take. */
  readonly claimMs: number;
  readonly sendTimeoutMs: number;
  readonly attemptsMax: number;
  readonly retryFirstMs: number;
  readonly retryCapMs: number;
  /** Of the time for stopping, how much sends in hand may take; then they are given back. */
  readonly drainMs: number;
  /** Told of every attempt; by default nobody is. */
  readonly metrics?: DeliveryMetrics;
}

const MEASURE_EVERY_MS = 10_000;
const STORE_BACKOFF = { firstMs: 100, maxMs: 5_000 } as const;
const RETRY_FACTOR = 2;
const RETRY_JITTER = 0.25;
/** Of the drain, how long giving back may take. */
const GIVE_BACK_SHARE = 0.25;

/** The loop's own figures since it started, and what it found in the database a while ago. */
export interface DeliverySnapshot {
  readonly state: 'running' | 'stopping';
  readonly inHand: number;
  readonly sent: number;
  readonly retried: number;
  readonly dead: number;
  readonly queue: QueueFigures | null;
}

export class DeliveryLoop implements Companion {
  readonly name = 'delivery';
  readonly #options: DeliveryOptions;
  readonly #channels: readonly Channel[];
  readonly #health: ChannelHealth;
  readonly #stopping = new Wakeup();
  readonly #slotFree = new Wakeup();
  /** One for each send in hand. */
  readonly #sending = new Set<AbortController>();
  readonly #running = new Set<Promise<void>>();
  readonly #counts = { sent: 0, retried: 0, dead: 0 };
  readonly #failed: Promise<never>;
  #loops: Promise<unknown> = Promise.resolve();
  #fail: (error: unknown) => void = () => undefined;
  #isAbandoned = false;
  #queue: QueueFigures | null = null;
  #storeFailures = 0;

  constructor(options: DeliveryOptions) {
    this.#options = options;
    this.#channels = Object.keys(options.senders) as Channel[];
    this.#health = new ChannelHealth(options.logger);
    this.#failed = new Promise((_resolve, reject) => (this.#fail = reject));
    // Whoever runs it hears of it; until then it is not unhandled.
    this.#failed.catch(() => undefined);
    if (options.metrics !== undefined) {
      const queue = () => options.queue.measure(this.#channels);
      tellDelivery(options.metrics, this.#channels, { queue, inHand: () => this.#running.size });
    }
  }

  async run(): Promise<void> {
    this.#loops = Promise.all([this.#claimLoop(), this.#measureLoop()]);
    await Promise.race([this.#loops, this.#failed]);
  }

  async stop(): Promise<void> {
    const { clock, drainMs, senders } = this.#options;
    this.#stopping.ringForGood();
    await this.#idleWithin(drainMs);
    this.#isAbandoned = true;
    for (const time of this.#sending) time.abort();
    await this.#idleWithin(drainMs * GIVE_BACK_SHARE);
    await Promise.race([
      Promise.allSettled(Object.values(senders).map((sender) => sender.close())),
      sleep(clock, drainMs * GIVE_BACK_SHARE),
    ]);
  }

  health(): string | null {
    if (this.#storeFailures > 1) return 'the database does not answer';
    return this.#health.reason();
  }

  snapshot(): DeliverySnapshot {
    const state = this.#stopping.rungForGood ? 'stopping' : 'running';
    return { state, inHand: this.#running.size, ...this.#counts, queue: this.#queue };
  }

  async #claimLoop(): Promise<void> {
    const { clock, deliveriesMax, pollMs, claimMs } = this.#options;
    while (!this.#stopping.rungForGood) {
      // Several at once, since a claim costs the same for one and for many.
      if (this.#running.size > deliveriesMax / 2) {
        await sleep(clock, claimMs, this.#slotFree, this.#stopping);
        continue;
      }
      const claimed = await this.#claim(deliveriesMax - this.#running.size);
      for (const one of claimed) this.#begin(one);
      if (claimed.length === 0) await sleep(clock, this.#storeWaitMs(pollMs), this.#stopping);
    }
  }

  async #claim(limit: number): Promise<readonly ClaimedNotification[]> {
    const { queue, claimMs } = this.#options;
    try {
      const claimed = await queue.claimDue({ channels: this.#channels, limit, claimMs });
      this.#storeFailures = 0;
      return claimed;
    } catch (error) {
      this.#storeFailed('claiming notifications', error);
      return [];
    }
  }

  #begin(claimed: ClaimedNotification): void {
    const run = this.#deliver(claimed).finally(() => {
      this.#running.delete(run);
      this.#slotFree.ring();
    });
    run.catch(this.#fail);
    this.#running.add(run);
  }

  async #deliver(claimed: ClaimedNotification): Promise<void> {
    const { clock, metrics } = this.#options;
    const { channel } = claimed;
    const beganAtMs = clock.now();
    const verdict = this.#stopping.rungForGood ? GIVEN_BACK : await this.#attempt(claimed);
    metrics?.count('attempts', { channel, outcome: verdict.kind });
    metrics?.observe('duration', { channel }, (clock.now() - beganAtMs) / 1_000);
    if (await this.#settle(claimed, verdict)) this.#tell(claimed, verdict);
  }

  async #attempt(claimed: ClaimedNotification): Promise<DeliveryVerdict> {
    const { attemptsMax, retryFirstMs, retryCapMs: capMs, random } = this.#options;
    const { attempts, channel } = claimed;
    if (attempts > attemptsMax) {
      // Each claim was counted before it was sent, and no failure was written for the last: its worker did not live to.
      const reason = `Its ${attemptsMax} attempts are spent, and the last one ended without an answer: the worker may have died.`;
      return { kind: 'dead', because: 'transient', reason };
    }
    const outcome = await this.#send(claimed);
    if (outcome === null) return GIVEN_BACK;
    this.#health.heard(channel, outcome);
    const delays = {
      kind: 'exponential',
      firstMs: retryFirstMs,
      factor: RETRY_FACTOR,
      capMs,
      jitter: RETRY_JITTER,
    } as const;
    return decideDelivery(outcome, { attempts, policy: { delays, attemptsMax }, capMs, random });
  }

  /** Null when the worker stops before there is an answer. */
  async #send(claimed: ClaimedNotification): Promise<SendOutcome | null> {
    const { senders, clock, sendTimeoutMs } = this.#options;
    const sender = senders[claimed.channel];
    if (sender === undefined) return null;
    const time = new AbortController();
    const { signal } = time;
    const cancel = clock.after(sendTimeoutMs, () => {
      time.abort();
    });
    const isOver = new Promise<null>((resolve) => {
      signal.addEventListener('abort', () => {
        resolve(null);
      });
    });
    this.#sending.add(time);
    try {
      // A sender that does not obey must not keep its slot.
      const outcome = await Promise.race([sender.send(claimed, signal), isOver]);
      if (outcome !== null && !signal.aborted) return outcome;
    } catch (error) {
      if (!signal.aborted) return { kind: 'transient', reason: reasonOf(error) };
    } finally {
      cancel();
      this.#sending.delete(time);
    }
    return this.#isAbandoned ? null : { kind: 'transient', reason: `no answer within ${sendTimeoutMs} ms` };
  }

  /** Tries for as long as the worker lives: what was sent must not be sent again. False when it ends before. */
  async #settle(claimed: ClaimedNotification, verdict: DeliveryVerdict): Promise<boolean> {
    for (let failures = 1; ; failures += 1) {
      try {
        await this.#options.queue.settle(claimed, verdict);
        return true;
      } catch (error) {
        this.#storeFailed(`settling notification ${claimed._id}`, error);
      }
      if (this.#isAbandoned) return false;
      await sleep(this.#options.clock, backoffMs(STORE_BACKOFF, failures, this.#options.random), this.#stopping);
    }
  }

  #tell({ _id, channel, orderId, attempts }: ClaimedNotification, verdict: DeliveryVerdict): void {
    const { logger } = this.#options;
    if (verdict.kind === 'sent') this.#counts.sent += 1;
    if (verdict.kind === 'retry') this.#counts.retried += 1;
    if (verdict.kind !== 'dead') return;
    this.#counts.dead += 1;
    const { because, reason } = verdict;
    logger.error({ notification: _id, channel, orderId, attempts, because, reason }, 'notification is dead');
  }

  async #measureLoop(): Promise<void> {
    while (!this.#stopping.rungForGood) {
      try {
        this.#queue = await this.#options.queue.measure(this.#channels);
      } catch (error) {
        this.#storeFailed('counting notifications', error);
      }
      await sleep(this.#options.clock, MEASURE_EVERY_MS, this.#stopping);
    }
  }

  /** An outage is waited for; anything else is a defect, and ends the service. */
  #storeFailed(operation: string, error: unknown): void {
    if (!isNightporterError(error, 'NP_STORE_UNAVAILABLE')) throw error;
    this.#storeFailures += 1;
    if (this.#storeFailures === 1) this.#options.logger.warn({ operation, err: error }, 'database unavailable');
  }

  #storeWaitMs(pollMs: number): number {
    if (this.#storeFailures === 0) return pollMs;
    return Math.max(pollMs, backoffMs(STORE_BACKOFF, this.#storeFailures, this.#options.random));
  }

  async #idleWithin(limitMs: number): Promise<void> {
    const idle = new Wakeup();
    // The loops first: a claim that is under way becomes work in hand.
    void Promise.allSettled([this.#loops])
      .then(() => Promise.allSettled(this.#running))
      .then(() => {
        idle.ringForGood();
      });
    await sleep(this.#options.clock, limitMs, idle);
  }
}

const GIVEN_BACK = { kind: 'given-back' } as const;
