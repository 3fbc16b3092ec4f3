import type {
  CheckpointClaim,
  LeaseOutcome,
  RepairRecord,
  ShardId,
  ShardMap,
  ShardMapOutcome,
} from '@nightporter/relay';
import { epoch, type Epoch, type Pause, type ResumeToken } from '@nightporter/protocol';
import type { DatabaseClock } from './outbox.js';

export interface LeaseDocument {
  readonly epoch: Epoch;
  readonly owner: string;
  readonly expiresAtMs: number;
}

/** `relay_leases`. */
export class MemoryLeases {
  readonly documents = new Map<ShardId, LeaseDocument>();
  readonly #clock: DatabaseClock;

  constructor(clock: DatabaseClock) {
    this.#clock = clock;
  }

  acquire(request: { shard: ShardId; owner: string; durationMs: number }): LeaseOutcome {
    const held = this.documents.get(request.shard);
    const expired = held === undefined || held.expiresAtMs <= this.#clock();
    if (!expired && held.owner !== request.owner) return { kind: 'refused', owner: held.owner };
    const next = expired ? epoch((held?.epoch ?? 0) + 1) : held.epoch;
    const expiresAtMs = this.#clock() + request.durationMs;
    this.documents.set(request.shard, { epoch: next, owner: request.owner, expiresAtMs });
    return { kind: 'held', epoch: next, takenOver: expired };
  }

  release(request: { shard: ShardId; owner: string; epoch: Epoch }): void {
    const held = this.documents.get(request.shard);
    if (held?.owner !== request.owner || held.epoch !== request.epoch) return;
    this.documents.set(request.shard, { ...held, expiresAtMs: Math.min(held.expiresAtMs, this.#clock()) });
  }
}

/** `relay_instances`. */
export class MemoryInstances {
  readonly #living = new Map<string, { readonly map: string; readonly expiresAtMs: number }>();
  readonly #clock: DatabaseClock;

  constructor(clock: DatabaseClock) {
    this.#clock = clock;
  }

  announce({ instance, map, durationMs }: { instance: string; map: ShardMap; durationMs: number }): readonly string[] {
    const nowMs = this.#clock();
    const own = { map: map.join(' '), expiresAtMs: nowMs + durationMs };
    this.#living.set(instance, own);
    const alike = [...this.#living].filter(([, other]) => other.expiresAtMs > nowMs && other.map === own.map);
    return alike.map(([living]) => living);
  }

  leave({ instance }: { instance: string }): void {
    this.#living.delete(instance);
  }
}

/** `relay_shard_map`. */
export class MemoryShardMap {
  #agreed: { readonly map: string; readonly atMs: number } | null = null;
  readonly #leases: MemoryLeases;
  readonly #clock: DatabaseClock;

  constructor(leases: MemoryLeases, clock: DatabaseClock) {
    this.#leases = leases;
    this.#clock = clock;
  }

  agree({ map, settleMs }: { map: ShardMap; settleMs: number }): ShardMapOutcome {
    const nowMs = this.#clock();
    const served = this.#servedOutside(map);
    if (served !== null) return served;
    const isSettling = this.#agreed !== null && this.#agreed.atMs + settleMs > nowMs;
    if (isSettling) return this.check({ map });
    if (this.#agreed?.map !== map.join(' ')) this.#agreed = { map: map.join(' '), atMs: nowMs };
    return { kind: 'agreed' };
  }

  check({ map }: { map: ShardMap }): ShardMapOutcome {
    const served = this.#servedOutside(map);
    if (served !== null) return served;
    const agreed = this.#agreed?.map;
    if (agreed === map.join(' ')) return { kind: 'agreed' };
    return { kind: 'other', reason: `agreed on are the shards ${agreed ?? 'of nobody'}` };
  }

  #servedOutside(map: ShardMap): ShardMapOutcome | null {
    for (const [shard, { owner, expiresAtMs }] of this.#leases.documents) {
      if (map.includes(shard) || expiresAtMs <= this.#clock()) continue;
      return { kind: 'other', reason: `shard ${shard} is held by ${owner}` };
    }
    return null;
  }
}

export interface CheckpointDocument {
  readonly epoch: Epoch;
  readonly seq: number;
  readonly token: ResumeToken | null;
}

export interface CheckpointSave {
  readonly shard: ShardId;
  readonly epoch: Epoch;
  readonly seq: number;
  readonly token: ResumeToken;
}

/** `relay_checkpoints`. */
export class MemoryCheckpoints {
  readonly documents = new Map<ShardId, CheckpointDocument>();
  /** Told of every save that was accepted. */
  onSaved: (save: CheckpointSave) => void = () => undefined;

  claim(request: { shard: ShardId; epoch: Epoch }): CheckpointClaim {
    const stored = this.documents.get(request.shard) ?? { epoch: epoch(0), seq: 0, token: null };
    const used = stored.epoch === request.epoch && stored.seq > 0;
    if (stored.epoch > request.epoch || used) return { kind: 'fenced' };
    this.documents.set(request.shard, { ...stored, epoch: request.epoch, seq: 0 });
    return { kind: 'claimed', token: stored.token };
  }

  save(request: CheckpointSave): 'saved' | 'fenced' {
    const stored = this.documents.get(request.shard);
    if (stored?.epoch !== request.epoch || stored.seq >= request.seq) return 'fenced';
    this.overwrite(request);
    return 'saved';
  }

  /** What nobody but a saboteur does. */
  overwrite(request: CheckpointSave): void {
    this.documents.set(request.shard, { epoch: request.epoch, seq: request.seq, token: request.token });
    this.onSaved(request);
  }
}

/** `relay_controls`. */
export class MemoryControls {
  #all = false;
  readonly #topics = new Set<string>();

  /** Null: everything. */
  pause(topic: string | null): void {
    if (topic === null) this.#all = true;
    else this.#topics.add(topic);
  }

  resume(topic: string | null): void {
    if (topic === null) this.#all = false;
    else this.#topics.delete(topic);
  }

  read(): Pause {
    return { all: this.#all, topics: [...this.#topics].sort() };
  }
}

/** `relay_repairs`. */
export class MemoryRepairs {
  readonly records: RepairRecord[] = [];

  record(repair: RepairRecord): void {
    this.records.push(repair);
  }
}
