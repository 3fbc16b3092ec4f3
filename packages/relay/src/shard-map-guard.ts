import { renewEveryMs, type Wakeup } from '@nightporter/protocol';
import type { Progress } from './counts.js';
import type { RelayOptions } from './options.js';
import type { ShardMap, ShardMapOutcome } from './ports.js';
import type { RelayPorts } from './relay.js';
import { isOutage, limited, storeUnavailable } from './waiting.js';

export interface ShardMapGuardDetails {
  readonly ports: RelayPorts;
  readonly options: RelayOptions;
}

/** Who asks, and until when the answer matters. */
export interface MapQuestion {
  readonly progress: Progress;
  readonly over: Wakeup;
}

export type MapAnswer = 'agreed' | 'other' | 'unknown';

/** Keeps shards from being served while another division of the slots is: asked before a lease is asked for, and again once it is ours. */
export class ShardMapGuard {
  readonly #details: ShardMapGuardDetails;
  readonly #map: ShardMap;
  #otherMap: string | null = null;

  constructor(details: ShardMapGuardDetails) {
    this.#details = details;
    this.#map = details.options.shards.map(({ id }) => id);
  }

  /** Why another division keeps this relay waiting, as last told; null while none does. */
  get otherMap(): string | null {
    return this.#otherMap;
  }

  async beforeAsking(question: MapQuestion): Promise<MapAnswer> {
    const { ports, options } = this.#details;
    // A map that was agreed on has the time of a lease for its first take-over, so that two that meet do not push each other away for ever.
    const request = { map: this.#map, settleMs: options.leaseMs };
    return await this.#answer('shardMaps.agree', () => ports.shardMaps.agree(request), question);
  }

  async beforeServing(question: MapQuestion): Promise<MapAnswer> {
    const { shardMaps } = this.#details.ports;
    return await this.#answer('shardMaps.check', () => shardMaps.check({ map: this.#map }), question);
  }

  async #answer(
    operation: string,
    call: () => Promise<ShardMapOutcome>,
    { progress, over }: MapQuestion,
  ): Promise<MapAnswer> {
    const { ports, options } = this.#details;
    const limit = { clock: ports.clock, limitMs: renewEveryMs(options.leaseMs), over, onLimit: storeUnavailable };
    try {
      const outcome = await limited(call, limit);
      progress.leaseFailuresInARow = 0;
      progress.leaseAnsweredAtMs = ports.clock.now();
      this.#tell(outcome);
      return outcome.kind;
    } catch (error) {
      if (over.rungForGood) return 'unknown';
      if (!isOutage(error)) throw error;
      progress.leaseFailuresInARow += 1;
      progress.counts.databaseFailures += 1;
      ports.observe({ kind: 'database-unavailable', operation, error });
      return 'unknown';
    }
  }

  #tell(outcome: ShardMapOutcome): void {
    const hadOther = this.#otherMap !== null;
    this.#otherMap = outcome.kind === 'other' ? outcome.reason : null;
    if (outcome.kind === 'other' && !hadOther)
      this.#details.ports.observe({ kind: 'other-shard-map', reason: outcome.reason });
  }
}
