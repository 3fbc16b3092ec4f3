import type { Clock, Random } from '@nightporter/protocol';
import { resolveOptions, type ConsumerOptions, type ConsumerSetup } from './options.js';
import type { ConsumerObserver, Emitter, GroupStore, ParkedQueue, Subscriber } from './ports.js';
import type { ConsumerSnapshot } from './snapshot.js';

/** What the engine needs of the world. */
export interface ConsumerPorts<Session> {
  /** One per topic of the group. */
  readonly subscribers: readonly Subscriber[];
  readonly store: GroupStore<Session>;
  readonly parked: ParkedQueue;
  readonly emitter: Emitter<Session>;
  readonly clock: Clock;
  readonly random: Random;
  readonly observe: ConsumerObserver;
}

/**
 * One member of a consumer group. `run` may be called once; it resolves when a `stop` has drained, and rejects when an
 * invariant is broken. `stop` resolves with it, within `drainMs`.
 */
export interface Consumer {
  run(): Promise<void>;
  stop(): Promise<void>;
  snapshot(): ConsumerSnapshot;
}

/** Rejects options that cannot work with NP_CONFIG_INVALID; starts nothing before `run`. */
export function createConsumer<Session>(
  ports: ConsumerPorts<Session>,
  options: ConsumerSetup<Session> & Partial<ConsumerOptions>,
): Consumer {
  resolveOptions(options);
  throw new Error(`The engine of ${options.group} over ${ports.subscribers.length} subscribers is being written.`);
}
