import { Wakeup, fairShare, renewEveryMs, shareStep, sleep, type Clock } from '@nightporter/protocol';
import type { RelayOptions } from './options.js';
import type { InstanceRegistry } from './ports.js';
import type { RelayObserver } from './relay-events.js';
import type { ShardRunner } from './shard-runner.js';
import type { ShardShare } from './shard-share.js';
import type { SharingSnapshot } from './snapshot.js';
import { isOutage, limited, storeUnavailable } from './waiting.js';

export interface ShareWatchDetails {
  readonly instances: InstanceRegistry;
  readonly clock: Clock;
  readonly observe: RelayObserver;
  readonly options: RelayOptions;
  readonly share: ShardShare;
  readonly runners: readonly ShardRunner[];
}

/**
 * Announces this instance and learns who else lives, and has surplus shards given back. It lives for as long as a lease: who dies
 * leaves both behind at about the same time. Where nothing was heard for as long, the share is unknown.
 */
export class ShareWatch {
  readonly #details: ShareWatchDetails;
  readonly #stop = new Wakeup();
  #instances: number | null = null;
  #failuresInARow = 0;
  #knownUntilMs = 0;

  constructor(details: ShareWatchDetails) {
    this.#details = details;
  }

  stop(): void {
    this.#stop.ringForGood();
  }

  snapshot(): SharingSnapshot {
    const { share, runners } = this.#details;
    return {
      instances: this.#instances,
      share: share.share,
      held: runners.filter((runner) => runner.isServing).length,
      announceFailuresInARow: this.#failuresInARow,
    };
  }

  /** Resolves once stopped, and no longer announced. */
  async run(): Promise<void> {
    const { clock, options } = this.#details;
    const everyMs = Math.min(options.standbyEveryMs, renewEveryMs(options.leaseMs));
    while (!this.#stop.rungForGood) {
      await this.#announce();
      this.#giveBackSurplus();
      await sleep(clock, everyMs, this.#stop);
    }
    await this.#leave();
  }

  async #announce(): Promise<void> {
    const { instances, clock, observe, options, share } = this.#details;
    const { owner, leaseMs, shards } = options;
    const announcement = { instance: owner, map: shards.map(({ id }) => id), durationMs: leaseMs };
    const askedAtMs = clock.now();
    try {
      const limit = { clock, limitMs: renewEveryMs(leaseMs), over: this.#stop, onLimit: storeUnavailable };
      const living = await limited(() => instances.announce(announcement), limit);
      this.#failuresInARow = 0;
      this.#knownUntilMs = askedAtMs + leaseMs;
      this.#instances = living.length;
      const fair = fairShare({ shards: shards.length, instances: living, self: owner });
      if (share.set(fair)) observe({ kind: 'share-changed', instances: living.length, share: fair });
    } catch (error) {
      if (this.#stop.rungForGood) return;
      if (!isOutage(error)) throw error;
      this.#failuresInARow += 1;
      if (clock.now() >= this.#knownUntilMs) share.set(null);
      observe({ kind: 'database-unavailable', operation: 'instances.announce', error });
    }
  }

  #giveBackSurplus(): void {
    const { share, runners } = this.#details;
    const kept = runners.filter((runner) => runner.isServing && !runner.isGivingBack);
    const step = shareStep({ share: share.share, held: kept.length });
    if (step.kind === 'give-back') for (const runner of kept.slice(-step.surplus)) runner.giveBack();
  }

  async #leave(): Promise<void> {
    const { instances, clock, observe, options } = this.#details;
    try {
      const limit = { clock, limitMs: 2 * options.standbyEveryMs, over: new Wakeup(), onLimit: storeUnavailable };
      await limited(() => instances.leave({ instance: options.owner }), limit);
    } catch (error) {
      if (!isOutage(error)) throw error;
      observe({ kind: 'database-unavailable', operation: 'instances.leave', error });
    }
  }
}
