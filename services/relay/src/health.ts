import type { RelaySnapshot, ShardSnapshot } from '@nightporter/relay';

/** No step ahead for so long counts as standing still. */
const STILL_MS = 30_000;
/** A failed send that was not repeated for so long is over: its row is gone, or its topic is probed seldom and named as closed. */
const SEND_FAILURE_MS = 60_000;

/** Sends to one topic that failed since one last succeeded, when the last of them did, and what it said. */
export interface SendHealth {
  readonly topic: string;
  readonly failuresInARow: number;
  readonly sinceLastMs: number;
  readonly lastError: string;
}

/**
 * Why a relay makes no progress; empty when it does. One that stands by for another's lease is healthy as long as its requests for the
 * lease are answered: it is doing its work. So is one that an operator has paused; its snapshot says so.
 */
export function relayProblems(snapshot: RelaySnapshot, sends: readonly SendHealth[]): readonly string[] {
  const problems = [...sharingProblems(snapshot), ...snapshot.shards.flatMap(shardProblems)];
  return snapshot.shards.some(isServed) ? [...problems, ...sends.flatMap(sendProblems)] : problems;
}

/** Held by this relay. Where it holds nothing, what its sends came to is of no more interest. */
function isServed(shard: ShardSnapshot): boolean {
  return shard.state !== 'elsewhere' && shard.state !== 'standby' && shard.state !== 'stopped';
}

/** Where its share is unknown, a relay takes no shard over. */
function sharingProblems({ sharing }: RelaySnapshot): readonly string[] {
  if (sharing?.share !== null || sharing.announceFailuresInARow === 0) return [];
  return [`announced itself ${sharing.announceFailuresInARow} times without an answer, and takes no shard over`];
}

function shardProblems(shard: ShardSnapshot): readonly string[] {
  const name = `shard ${shard.shard}`;
  const closed = shard.topicsClosed.map((topic) => `topic ${topic} cannot be sent to`);
  switch (shard.state) {
    case 'elsewhere':
      return [];
    case 'standby':
      return leaseProblems(shard).map((reason) => `${name} ${reason}`);
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

function leaseProblems({ leaseFailuresInARow, sinceLeaseAnswerMs, otherMap }: ShardSnapshot): readonly string[] {
  if (otherMap !== null) return [`waits while another division of the slots is served: ${otherMap}`];
  if (leaseFailuresInARow > 0) return [`asked ${leaseFailuresInARow} times for its lease without an answer`];
  if (sinceLeaseAnswerMs === null) return ['has not been told yet who holds its lease'];
  const isStill = longerThan(sinceLeaseAnswerMs);
  return isStill ? [`has not been told for ${seconds(sinceLeaseAnswerMs)} who holds its lease`] : [];
}

function stillness(shard: ShardSnapshot): readonly string[] {
  const { state, rowsInMemory, unmarkedForMs, uncoveredForMs, sinceAheadMs } = shard;
  const reasons: string[] = [];
  if (state === 'sweeping' && longerThan(sinceAheadMs)) {
    reasons.push(`is sweeping and got no further for ${seconds(sinceAheadMs)}`);
  }
  // With rows in hand that are being marked, reading waits for room: the broker is slow, or sends are limited.
  const isBusy = unmarkedForMs !== null && !longerThan(unmarkedForMs);
  const sinceReadMs = shard.sinceReadMs ?? sinceAheadMs;
  if (state !== 'sweeping' && !isBusy && longerThan(sinceReadMs)) {
    const source = state === 'polling' ? 'the outbox' : 'the change stream';
    reasons.push(`has read nothing from ${source} for ${seconds(sinceReadMs)}`);
  }
  if (longerThan(unmarkedForMs)) {
    reasons.push(`holds ${rowsInMemory} rows and has marked none for ${seconds(unmarkedForMs)}`);
  }
  if (state === 'following' && longerThan(uncoveredForMs)) {
    reasons.push(`reads on, and its checkpoint has not moved for ${seconds(uncoveredForMs)}`);
  }
  return reasons;
}

function sendProblems({ topic, failuresInARow, sinceLastMs, lastError }: SendHealth): readonly string[] {
  if (failuresInARow === 0 || sinceLastMs > SEND_FAILURE_MS) return [];
  return [`the last ${failuresInARow} sends to ${topic} failed: ${lastError}`];
}

function longerThan(sinceMs: number | null): boolean {
  return sinceMs !== null && sinceMs > STILL_MS;
}

function seconds(sinceMs: number | null): string {
  return `${Math.round((sinceMs ?? 0) / 1000)} s`;
}
