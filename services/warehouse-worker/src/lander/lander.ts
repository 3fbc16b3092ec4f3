/**
 * Lands staged events in files, one worker of the group at a time.
 *
 *   standing-by ──the lease is free──▶ landing ──failed, lease lost──▶ standing-by
 *        └──────────────stop──────────────┴──────────stop──────────▶ stopped
 *
 * Each turn of landing has an owner of its own, so that it raises the epoch, even over a turn of the same process.
 */
import { Wakeup, backoffMs, isNightporterError, sleep, type Clock, type Random } from '@nightporter/protocol';
import type { Logger } from '@nightporter/runtime';
import type { Companion } from '@nightporter/worker';
import type { CompactionLimits } from '../domain/compaction.js';
import type { Turn } from '../store/warehouse-store.js';
import { countLanded, tellLander, type LanderMetrics, type LanderSnapshot } from './metrics.js';
import { LandingSession, type SessionPorts } from './session.js';

export interface LanderOptions extends CompactionLimits {
  readonly leaseMs: number;
  /** How long it rests when nothing was left to land. */
  readonly everyMs: number;
  /** The most events of one transaction. */
  readonly eventsMax: number;
  /** How long a file stays in the folder once its rows are in another. */
  readonly keepReplacedMs: number;
}

export interface LanderPorts extends SessionPorts {
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  readonly newOwner: () => string;
  /** Told of everything that is landed; by default nobody is. */
  readonly metrics?: LanderMetrics;
}

const FAILURE_PAUSE = { firstMs: 500, maxMs: 10_000 };
/** Of a lease: how much of it passes until it is renewed. */
const RENEW_SHARE = 1 / 3;

export function createLander(ports: LanderPorts, options: LanderOptions): Companion {
  return new Lander(ports, options);
}

class Lander implements Companion {
  readonly name = 'lander';
  readonly #ports: LanderPorts;
  readonly #options: LanderOptions;
  readonly #stopping = new Wakeup();
  #running: Promise<void> | null = null;
  #state: 'standing-by' | 'landing' | 'stopped' = 'standing-by';
  #problem: string | null = null;
  #session: LandingSession | null = null;
  readonly #counts = { turns: 0, events: 0, merges: 0, mergedFiles: 0, removedFiles: 0, failures: 0 };

  constructor(ports: LanderPorts, options: LanderOptions) {
    const { metrics } = ports;
    this.#ports = ports;
    this.#options = options;
    if (metrics === undefined) return;
    this.#ports = {
      ...ports,
      landed: (landed) => {
        countLanded(metrics, landed);
      },
    };
    tellLander(metrics, { snapshot: () => this.snapshot(), staged: () => ports.store.figures() });
  }

  run(): Promise<void> {
    this.#running ??= this.#untilStopped();
    return this.#running;
  }

  async stop(): Promise<void> {
    this.#stopping.ringForGood();
    await this.#running;
  }

  health(): string | null {
    return this.#problem;
  }

  snapshot(): LanderSnapshot & Readonly<Record<string, unknown>> {
    const session = this.#session;
    const contents = session === null ? {} : { revision: session.revision, files: session.files };
    return { state: this.#state, ...contents, ...this.#counts };
  }

  async #untilStopped(): Promise<void> {
    const { clock, random } = this.#ports;
    for (let failures = 0; !this.#stopping.rungForGood;) {
      const failed = await this.#turn();
      failures = failed ? failures + 1 : 0;
      const pauseMs = failed ? backoffMs(FAILURE_PAUSE, failures, random) : this.#options.everyMs;
      await sleep(clock, pauseMs, this.#stopping);
    }
    this.#state = 'stopped';
  }

  /** True where it failed; standing by is no failure. */
  async #turn(): Promise<boolean> {
    const { logger, newOwner, store } = this.#ports;
    const owner = newOwner();
    let turn: Turn | null = null;
    try {
      turn = await store.take(owner, this.#options.leaseMs);
      if (turn === null) {
        this.#problem = null;
        return false;
      }
      await this.#landWhileOurs(turn);
      return false;
    } catch (error) {
      // Whatever it is, nothing is lost: what is not committed is still staged, and the next turn removes what this one left.
      this.#problem = error instanceof Error ? error.message : String(error);
      this.#counts.failures += 1;
      const isExpected =
        isNightporterError(error, 'NP_STORE_UNAVAILABLE') || isNightporterError(error, 'NP_LEASE_LOST');
      logger[isExpected ? 'warn' : 'error']({ err: error }, 'landing failed; it is tried again');
      return true;
    } finally {
      this.#session = null;
      this.#state = 'standing-by';
      if (turn !== null) await this.#release(turn);
    }
  }

  async #landWhileOurs(turn: Turn): Promise<void> {
    const { clock, logger } = this.#ports;
    let renewedAtMs = clock.now();
    const { session, removed } = await LandingSession.open(this.#ports, turn);
    this.#session = session;
    this.#state = 'landing';
    this.#problem = null;
    this.#counts.turns += 1;
    logger.info({ epoch: turn.epoch, revision: session.revision, files: session.files, removed }, 'landing');
    while (!this.#stopping.rungForGood) {
      if (clock.now() - renewedAtMs > this.#options.leaseMs * RENEW_SHARE) {
        const askedAtMs = clock.now();
        if (!(await this.#renew(turn))) return;
        renewedAtMs = askedAtMs;
      }
      await session.keepPublished();
      if (!(await this.#step(session))) await sleep(clock, this.#options.everyMs, this.#stopping);
    }
  }

  /** One piece of work. False where there was none left. */
  async #step(session: LandingSession): Promise<boolean> {
    const { eventsMax, keepReplacedMs } = this.#options;
    const { logger } = this.#ports;
    const landed = await session.land(eventsMax);
    this.#counts.events += landed;
    if (landed === eventsMax) return true;
    const merged = await session.compact(this.#options);
    if (merged > 0) {
      this.#counts.merges += 1;
      this.#counts.mergedFiles += merged;
      logger.debug({ files: merged, revision: session.revision }, 'merged');
      return true;
    }
    this.#counts.removedFiles += (await session.removeReplaced(keepReplacedMs)).length;
    return false;
  }

  /** False where another has taken over, or where the lease had run out, so that this is another epoch. */
  async #renew(turn: Turn): Promise<boolean> {
    const renewed = await this.#ports.store.take(turn.owner, this.#options.leaseMs);
    if (renewed === null || renewed.epoch === turn.epoch) return renewed !== null;
    await this.#release(renewed);
    return false;
  }

  async #release(turn: Turn): Promise<void> {
    try {
      await this.#ports.store.release(turn);
    } catch (error) {
      this.#ports.logger.warn({ err: error }, 'the lease of landing was not given back; it runs out by itself');
    }
  }
}
