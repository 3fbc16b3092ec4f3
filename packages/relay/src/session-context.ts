import type { OutboxRow } from '@nightporter/contracts';
import type { Epoch, PublishLanes, TokenBucket, Wakeup } from '@nightporter/protocol';
import type { Progress } from './counts.js';
import type { DatabaseCalls } from './database-calls.js';
import type { RelayOptions, Shard } from './options.js';
import type { RelayPorts } from './relay.js';

/** How a session ended. `fenced`: a later epoch has claimed the checkpoint. `lost`: the lease is no longer ours. */
export type SessionEnd = 'fenced' | 'lost' | 'drained';

/** What the parts of a session share: one shard, held in one epoch. */
export interface SessionContext {
  readonly ports: RelayPorts;
  readonly options: RelayOptions;
  readonly shard: Shard;
  readonly epoch: Epoch;
  readonly lanes: PublishLanes<OutboxRow>;
  /** Null when sends are not limited. */
  readonly rate: TokenBucket | null;
  readonly calls: DatabaseCalls;
  readonly progress: Progress;
  /** Rings for good when the session is over: nothing more is started, and late answers are ignored. */
  readonly over: Wakeup;
  readonly isOver: () => boolean;
  /** Rings when lanes or tracker may have room again. */
  readonly room: Wakeup;
  /** Sends, reads and records whatever the lanes now allow. Called after everything that changes them. */
  readonly pump: () => void;
  /** Runs a part of the session; an error that escapes it is a broken invariant, and ends the relay. */
  readonly spawn: (work: Promise<void>) => void;
  readonly finish: (end: SessionEnd) => void;
}
