import type { RelaySnapshot, ShardSnapshot } from '@nightporter/relay';

/** Nothing read, or nothing marked, for so long counts as standing still. */
const STILL_MS = 30_000;

/** Sends that failed since one last succeeded, and what the last of them said. */
export interface SendHealth {
  readonly failuresInARow: number;
  readonly lastError: string | null;
}

/**
 * Why a relay makes no progress; empty when it does. One that stands by for another's lease is healthy: it is doing its work.
 * So is one that an operator has paused; its snapshot says so.
 */
export function relayProblems(snapshot: RelaySnapshot, sends: SendHealth): readonly string[] {
  return [...snapshot.shards.flatMap(shardProblems), ...sendProblems(sends)];
}

function shardProblems(shard: ShardSnapshot): readonly string[] {
  const name = `shard ${shard.shard}`;
  const closed = shard.topicsClosed.map((topic) => `topic ${topic} cannot be sent to`);
  switch (shard.state) {
    case 'standby':
      return [];
    case 'starting':
      return [`${name} is starting`];
    case 'suspended':
      return [`${name} could not renew its lease and sends nothing`];
    case 'draining':
    case 'stopped':
      return [`${name} is ${shard.state}`];
    case 'sweeping':
    case 'following':
    case 'polling':
      return [...closed, ...stillness(shard).map((reason) => `${name} ${reason}`)];
  }
}

function stillness(shard: ShardSnapshot): readonly string[] {
  const reasons: string[] = [];
  // With rows in hand that are being marked, reading waits for room: the broker is slow, or sends are limited.
  const isBusy = shard.rowsInMemory > 0 && shard.sinceMarkMs !== null && !longerThan(shard.sinceMarkMs);
  const isReading = shard.state === 'following' || shard.state === 'polling';
  if (isReading && !isBusy && longerThan(shard.sinceReadMs)) {
    const source = shard.state === 'polling' ? 'the outbox' : 'the change stream';
    reasons.push(`has read nothing from ${source} for ${seconds(shard.sinceReadMs)}`);
  }
  if (shard.rowsInMemory > 0 && longerThan(shard.sinceMarkMs)) {
    reasons.push(`holds ${shard.rowsInMemory} rows and has marked none for ${seconds(shard.sinceMarkMs)}`);
  }
  return reasons;
}

function sendProblems({ failuresInARow, lastError }: SendHealth): readonly string[] {
  return failuresInARow === 0 ? [] : [`the last ${failuresInARow} sends failed: ${lastError ?? 'no reason was given'}`];
}

function longerThan(sinceMs: number | null): boolean {
  return sinceMs !== null && sinceMs > STILL_MS;
}

function seconds(sinceMs: number | null): string {
  return `${Math.round((sinceMs ?? 0) / 1000)} s`;
}
