import { ALL_SLOTS, NightporterError, SLOT_COUNT, slotsOfShard, type Slot } from '@nightporter/protocol';
import type { ShardId } from './ports.js';

/** A range of slots that is leased as one. The id names lease and checkpoint, so another range needs another id. */
export interface Shard {
  readonly id: ShardId;
  readonly slots: readonly Slot[];
}

/** All slots in `count` shards. The ids name count and place, so that no two divisions share a lease or a checkpoint. Throws NP_CONFIG_INVALID. */
export function shardsOf(count: number): readonly Shard[] {
  if (!Number.isSafeInteger(count) || count < 1 || count > SLOT_COUNT) {
    throw invalid('shards', String(count), `1 to ${SLOT_COUNT} shards`);
  }
  if (count === 1) return [{ id: 'all', slots: ALL_SLOTS }];
  return Array.from({ length: count }, (_, shard) => ({
    id: `${count}-${shard}`,
    slots: slotsOfShard({ shard, shards: count }),
  }));
}

/** Limits and times of a relay. Times are milliseconds on the relay's own monotonic clock unless the name says otherwise. */
export interface RelayOptions {
  /** Names this process start; never used twice, so that a restarted process is a new owner. */
  readonly owner: string;
  readonly shards: readonly Shard[];
  /**
   * Shares the shards out with the other instances of the database: each takes its fair part, and all of them must be given the same shards.
   * Otherwise it takes whatever is free of its own.
   */
  readonly sharesShards: boolean;

  /** How long a lease is granted for (database clock); renewed after a third of it. */
  readonly leaseMs: number;
  /** How often a relay that stands by asks for the lease. */
  readonly standbyEveryMs: number;
  /** How long `stop()` waits for sends in flight, their marks and the last checkpoint. What it gives back then takes {@link farewellMs} each. */
  readonly drainMs: number;

  /** Sends in flight, per shard. */
  readonly windowMax: number;
  /** Rows in memory (waiting, in flight or not yet marked), per shard, before reading stops; one page or batch more may be held. */
  readonly bufferMax: number;
  /** Delivered rows that the checkpoint still waits for, per shard, before the stream is no longer read. */
  readonly trackedMax: number;
  /** Held lanes that are remembered, per shard; a sweep brings the forgotten ones back. */
  readonly heldLanesMax: number;
  /** Aggregates whose last published version is remembered, per shard; what is forgotten is read from the outbox. */
  readonly rememberedLanesMax: number;

  /** How new rows are captured: by change stream, or by polling for deployments that have none. */
  readonly capture: 'stream' | 'polling';
  /** How long a polling relay rests between two readings of the outbox. */
  readonly pollEveryMs: number;
  /** Rows that a polling relay reads at once. */
  readonly pollBatchMax: number;

  /** How often the whole outbox is read for what the stream did not bring. */
  readonly sweepEveryMs: number;
  /** Rows in one page of a sweep. */
  readonly sweepPageMax: number;
  /** How long a row that a sweep found may be on its way through the stream before that counts as missed. */
  readonly streamGraceMs: number;
  /** How often a lane behind a DEAD or claimed row is read again (longer when very many are held). */
  readonly heldReadEveryMs: number;
  /** Lanes read from the outbox by one query. */
  readonly laneReadMax: number;
  /** Rows of one lane that such a query brings. */
  readonly laneRowsMax: number;

  /** Sends a second at most, over all shards of this process, so that a backlog does not flood the consumers. Null: no limit. */
  readonly sendsPerSecondMax: number | null;
  /** How often it is asked what operators have paused. */
  readonly controlsEveryMs: number;

  /** How often the outbox's figures are read, where there is a port for them; less often where that is slow. */
  readonly statsEveryMs: number;

  /** How long marks wait for company before they are written. */
  readonly markEveryMs: number;
  /** Marks written by one request. */
  readonly markBatchMax: number;
  /** Least time between two saves of the checkpoint. */
  readonly checkpointEveryMs: number;
  /** The same while only the token of an idle stream moves. */
  readonly idleCheckpointEveryMs: number;

  /**
   * A send without an answer for so long counts as unanswered. Shorter than the lease, and no shorter than the publisher's own worst send:
   * what a relay has begun to send must not still be on its way when another has long taken over.
   */
  readonly sendMs: number;
  /** A database call without an answer for so long counts as failed, and may still execute. */
  readonly callMs: number;

  /** Delay after the first transient failure of a send; doubles, with jitter, up to `transientDelayMaxMs`. */
  readonly transientDelayMs: number;
  readonly transientDelayMaxMs: number;
  /**
   * Transient failures in a row after which an event whose topic takes others is set aside as FAILED, uncharged, and after which a topic
   * that takes nothing is closed; it is then probed as often as `transientDelayMaxMs` allows.
   */
  readonly stalledAfter: number;
  /** Delay before a topic that cannot be sent to is probed; doubles, with jitter, up to `topicDelayMaxMs`. */
  readonly topicDelayMs: number;
  readonly topicDelayMaxMs: number;
  /** Delay (database clock) before a FAILED event is tried again; doubles, with jitter, up to `failedDelayMaxMs`. */
  readonly failedDelayMs: number;
  readonly failedDelayMaxMs: number;
  /** Permanent failures of an event before it is DEAD. */
  readonly attemptsMax: number;
  /** Delay after a failed database call; doubles, with jitter, up to `databaseDelayMaxMs`. */
  readonly databaseDelayMs: number;
  readonly databaseDelayMaxMs: number;
}

export const RELAY_DEFAULTS: Omit<RelayOptions, 'owner'> = {
  shards: shardsOf(1),
  sharesShards: false,
  leaseMs: 15_000,
  standbyEveryMs: 1_000,
  drainMs: 10_000,
  windowMax: 256,
  bufferMax: 1_024,
  trackedMax: 10_000,
  heldLanesMax: 10_000,
  rememberedLanesMax: 100_000,
  capture: 'stream',
  pollEveryMs: 1_000,
  pollBatchMax: 100,
  sweepEveryMs: 60_000,
  sweepPageMax: 500,
  streamGraceMs: 5_000,
  heldReadEveryMs: 5_000,
  laneReadMax: 64,
  laneRowsMax: 32,
  sendsPerSecondMax: null,
  controlsEveryMs: 1_000,
  statsEveryMs: 5_000,
  markEveryMs: 3,
  markBatchMax: 400,
  checkpointEveryMs: 500,
  idleCheckpointEveryMs: 10_000,
  sendMs: 10_000,
  callMs: 30_000,
  transientDelayMs: 50,
  transientDelayMaxMs: 5_000,
  stalledAfter: 4,
  topicDelayMs: 1_000,
  topicDelayMaxMs: 30_000,
  failedDelayMs: 1_000,
  failedDelayMaxMs: 60_000,
  attemptsMax: 5,
  databaseDelayMs: 50,
  databaseDelayMaxMs: 5_000,
};

/**
 * How long giving the stream back, and then the lease, may take at the end of a session. Both are for the sake of others, who manage without: the server
 * forgets a stream that nobody reads, and the lease runs out.
 */
export function farewellMs({ drainMs }: Pick<RelayOptions, 'drainMs'>): number {
  return Math.max(50, Math.floor(drainMs / 5));
}

/** Fills in the defaults. Throws NP_CONFIG_INVALID, naming the option and its accepted range. */
export function relayOptions(given: { owner: string } & Partial<RelayOptions>): RelayOptions {
  const options: RelayOptions = { ...RELAY_DEFAULTS, ...given };
  if (options.owner === '') throw invalid('owner', '""', 'a name that no other process start uses');
  if (options.shards.length === 0) throw invalid('shards', '[]', 'at least one shard');
  const ids = new Set(options.shards.map((shard) => shard.id));
  if (ids.size < options.shards.length) throw invalid('shards', [...ids].join(', '), 'shards with different ids');
  const slots = options.shards.flatMap((shard) => shard.slots);
  if (new Set(slots).size < slots.length) throw invalid('shards', 'overlapping slots', 'every slot in one shard only');
  for (const [name, value] of Object.entries(options)) {
    if (typeof value === 'number' && !(Number.isSafeInteger(value) && value >= 1)) {
      throw invalid(name, String(value), 'an integer of 1 or more');
    }
  }
  if (options.sendMs >= options.leaseMs) {
    throw invalid('sendMs', String(options.sendMs), `less than leaseMs, which is ${options.leaseMs}`);
  }
  return options;
}

function invalid(name: string, value: string, accepted: string): NightporterError {
  return new NightporterError('NP_CONFIG_INVALID', `Relay option ${name} is ${value}; accepted: ${accepted}.`);
}
