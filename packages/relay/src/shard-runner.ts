import {
  NOTHING_PAUSED,
  Wakeup,
  backoffMs,
  leaseDeadline,
  renewEveryMs,
  sleep,
  type Epoch,
  type TokenBucket,
} from '@nightporter/protocol';
import { Progress } from './counts.js';
import { farewellMs, type RelayOptions, type Shard } from './options.js';
import type { RelayPorts } from './relay.js';
import { Session } from './session.js';
import type { ShardMapGuard } from './shard-map-guard.js';
import type { ShardShare } from './shard-share.js';
import type { ShardSnapshot, ShardState } from './snapshot.js';
import { isOutage, limited, storeUnavailable } from './waiting.js';

export interface ShardRunnerDetails {
  readonly ports: RelayPorts;
  readonly options: RelayOptions;
  readonly shard: Shard;
  /** Shared by all shards of the process. */
  readonly rate: TokenBucket | null;
  /** Shared by all shards of the process. Null where shards are not shared out: then the lease alone decides. */
  readonly sharing: { readonly share: ShardShare; readonly map: ShardMapGuard } | null;
}

/** A lease that is ours, and until when we may act on it. */
interface HeldLease {
  readonly epoch: Epoch;
  readonly deadlineMs: number;
}

type LeaseAnswer =
  ({ readonly kind: 'held' } & HeldLease) | { readonly kind: 'refused' } | { readonly kind: 'unknown' };

/**
 * Asks for the lease of one shard and, while it has it, runs a session in its epoch.
 *
 * *Elsewhere*: this instance has its share of the shards, and does not ask. *Standing by*: the lease is somebody else's, or the database does not answer; asked for every `standbyEveryMs`. *Serving*:
 * ours, renewed after a third of its length. A renewal in another epoch means that it expired in between: the session is over, and a new
 * one begins. *Giving back*: others have less than their share; as when stopping, and then it is asked for again in its turn. *Stopping*: the session drains, its lease renewed meanwhile; then the lease is given back.
 */
export class ShardRunner {
  readonly #ports: RelayPorts;
  readonly #options: RelayOptions;
  readonly #shard: Shard;
  readonly #rate: TokenBucket | null;
  readonly #share: ShardShare | null;
  readonly #map: ShardMapGuard | null;
  readonly #stop = new Wakeup();
  readonly #progress = new Progress();
  #session: Session | null = null;
  /** Begins to drain the session; null while there is none, or nothing renews its lease any more. */
  #drain: (() => void) | null = null;
  #hasPlace = false;
  #isGivingBack = false;
  #hasStopped = false;

  constructor(details: ShardRunnerDetails) {
    this.#ports = details.ports;
    this.#options = details.options;
    this.#shard = details.shard;
    this.#rate = details.rate;
    this.#share = details.sharing?.share ?? null;
    this.#map = details.sharing?.map ?? null;
  }

  stop(): void {
    this.#stop.ringForGood();
  }

  /** Resolves once stopped. Rejects when an invariant is broken. */
  async run(): Promise<void> {
    const { clock, random } = this.#ports;
    const { databaseDelayMs, standbyEveryMs } = this.#options;
    const backoff = { firstMs: Math.min(databaseDelayMs, standbyEveryMs), maxMs: standbyEveryMs };
    let failures = 0;
    while (!this.#isStopping()) {
      if (!this.#takePlace()) {
        await sleep(clock, standbyEveryMs, this.#stop, ...(this.#share === null ? [] : [this.#share.changed]));
        continue;
      }
      const answer = await (this.#map === null ? this.#acquire(new Wakeup()) : this.#ask(this.#map));
      failures = answer.kind === 'unknown' ? failures + 1 : 0;
      let lease: HeldLease | null = answer.kind === 'held' ? answer : null;
      while (lease !== null && clock.now() < lease.deadlineMs && !this.#isStopping()) lease = await this.#serve(lease);
      // Its answer came while stopping: nobody would serve until it expires.
      if (lease !== null && this.#isStopping()) await this.#release(lease.epoch);
      this.#freePlace();
      const waitMs = failures > 0 ? backoffMs(backoff, failures, random) : standbyEveryMs;
      await sleep(clock, waitMs, this.#stop);
    }
    this.#hasStopped = true;
  }

  /** Has the session drain and gives its lease back, since others have less than their share. Nothing happens where there is none. */
  giveBack(): void {
    if (this.#drain === null || this.#isGivingBack) return;
    this.#isGivingBack = true;
    this.#ports.observe({ kind: 'shard-given-back', shard: this.#shard.id });
    this.#drain();
  }

  get isGivingBack(): boolean {
    return this.#isGivingBack;
  }

  /** Holds the lease, and works. */
  get isServing(): boolean {
    return this.#session !== null;
  }

  snapshot(): ShardSnapshot {
    if (this.#session !== null) return this.#session.snapshot();
    const { windowMax } = this.#options;
    const { leaseAnsweredAtMs } = this.#progress;
    return {
      shard: this.#shard.id,
      state: this.#idleState(),
      epoch: null,
      windowMax,
      sendsInFlight: 0,
      rowsInMemory: 0,
      lanesHeld: 0,
      topicsClosed: [],
      paused: NOTHING_PAUSED,
      tracked: 0,
      checkpointSeq: 0,
      leaseFailuresInARow: this.#progress.leaseFailuresInARow,
      sinceLeaseAnswerMs: leaseAnsweredAtMs === null ? null : this.#ports.clock.now() - leaseAnsweredAtMs,
      otherMap: this.#map?.otherMap ?? null,
      sinceAheadMs: null,
      unmarkedForMs: null,
      uncoveredForMs: null,
      lagMs: null,
      publishesPerSecond: this.#progress.publishRate.perSecond(this.#ports.clock.now()),
      repairsByReason: Object.fromEntries(this.#progress.repairsByReason),
      sinceReadMs: null,
      sinceCaptureMs: null,
      sinceMarkMs: null,
      sinceCheckpointMs: null,
      counts: { ...this.#progress.counts },
    };
  }

  #idleState(): ShardState {
    if (this.#hasStopped) return 'stopped';
    const { share } = this.#share ?? { share: null };
    if (this.#hasPlace || share === null) return 'standby';
    return share > 0 && this.#map?.otherMap != null ? 'standby' : 'elsewhere';
  }

  /** Whether this shard may be asked for: always, unless shards are shared out. */
  #takePlace(): boolean {
    this.#hasPlace = this.#share === null || this.#share.take(this.#shard.id);
    return this.#hasPlace;
  }

  #freePlace(): void {
    this.#hasPlace = false;
    this.#share?.free(this.#shard.id);
  }

  async #ask(map: ShardMapGuard): Promise<LeaseAnswer> {
    const answer = await map.beforeAsking({ progress: this.#progress, over: this.#stop });
    if (answer !== 'agreed') return { kind: answer === 'other' ? 'refused' : 'unknown' };
    return await this.#acquire(new Wakeup());
  }

  /** Runs a session in the epoch of a lease, if no other division of the slots is served. Returns the lease of the next epoch, if that is ours again already. */
  async #serve({ epoch, deadlineMs }: HeldLease): Promise<HeldLease | null> {
    const { observe } = this.#ports;
    const shard = this.#shard.id;
    const question = { progress: this.#progress, over: this.#stop };
    if (this.#map !== null && (await this.#map.beforeServing(question)) !== 'agreed') {
      await this.#release(epoch);
      return null;
    }
    const session = new Session({
      ports: this.#ports,
      options: this.#options,
      shard: this.#shard,
      progress: this.#progress,
      rate: this.#rate,
      epoch,
      deadlineMs,
    });
    this.#session = session;
    this.#progress.counts.takeOvers += 1;
    observe({ kind: 'lease-acquired', shard, epoch });
    const renewed = this.#renew(session).catch((error: unknown) => {
      session.lose();
      throw error;
    });
    const [end, next] = await Promise.all([session.run(), renewed]);
    this.#session = null;
    this.#isGivingBack = false;
    if (end !== 'drained') observe({ kind: 'lease-lost', shard, epoch, reason: end });
    if (end !== 'lost') await this.#release(epoch);
    return end === 'lost' ? next : null;
  }

  /** Renews until the session is over. Returns the lease of the epoch that ended it, if that is ours. */
  async #renew(session: Session): Promise<HeldLease | null> {
    const { clock } = this.#ports;
    const everyMs = renewEveryMs(this.#options.leaseMs);
    const draining: Promise<void>[] = [];
    // Draining begins at once, even while a renewal hangs.
    const forgetStop = this.#stop.onceRung(() => {
      draining.push(session.drain(clock.now() + this.#options.drainMs));
    });
    // The lease is renewed meanwhile, so there is time for every send in flight to end.
    this.#drain = () => draining.push(session.drain(clock.now() + this.#options.sendMs + this.#options.drainMs));
    let next: HeldLease | null = null;
    let waitMs = everyMs;
    while (!session.isOver()) {
      await sleep(clock, waitMs, session.over);
      if (session.isOver()) break;
      const answer = await this.#acquire(session.over);
      waitMs = answer.kind === 'unknown' ? Math.min(everyMs, this.#options.standbyEveryMs) : everyMs;
      if (answer.kind === 'unknown') continue;
      if (answer.kind === 'held' && answer.epoch === session.epoch) {
        session.extend(answer.deadlineMs);
        continue;
      }
      session.lose();
      if (answer.kind === 'held') next = answer;
    }
    forgetStop();
    this.#drain = null;
    await Promise.all(draining);
    return next;
  }

  #isStopping(): boolean {
    return this.#stop.rungForGood;
  }

  /** An answer that is still out when the next one is due is given up: one that hangs must not cost the lease. */
  async #acquire(over: Wakeup): Promise<LeaseAnswer> {
    const { leases, clock, observe } = this.#ports;
    const { owner, leaseMs, drainMs } = this.#options;
    const limitMs = Math.min(renewEveryMs(leaseMs), drainMs);
    const requestedAtMs = clock.now();
    try {
      const request = { shard: this.#shard.id, owner, durationMs: leaseMs };
      const outcome = await this.#limited(() => leases.acquire(request), { limitMs, over });
      this.#progress.leaseFailuresInARow = 0;
      this.#progress.leaseAnsweredAtMs = clock.now();
      if (outcome.kind === 'refused') return { kind: 'refused' };
      return { kind: 'held', epoch: outcome.epoch, deadlineMs: leaseDeadline({ requestedAtMs, leaseMs }) };
    } catch (error) {
      if (over.rungForGood) return { kind: 'unknown' };
      if (!isOutage(error)) throw error;
      this.#progress.leaseFailuresInARow += 1;
      this.#progress.counts.databaseFailures += 1;
      observe({ kind: 'database-unavailable', operation: 'leases.acquire', error });
      return { kind: 'unknown' };
    }
  }

  async #release(epoch: Epoch): Promise<void> {
    const { leases, observe } = this.#ports;
    const { owner } = this.#options;
    try {
      const limit = { limitMs: farewellMs(this.#options), over: new Wakeup() };
      await this.#limited(() => leases.release({ shard: this.#shard.id, owner, epoch }), limit);
    } catch (error) {
      if (!isOutage(error)) throw error;
      observe({ kind: 'database-unavailable', operation: 'leases.release', error });
    }
  }

  async #limited<T>(call: () => Promise<T>, limit: { limitMs: number; over: Wakeup }): Promise<T> {
    const { clock } = this.#ports;
    return await limited(call, { clock, ...limit, onLimit: storeUnavailable });
  }
}
