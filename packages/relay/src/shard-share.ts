import { Wakeup, shareStep } from '@nightporter/protocol';
import type { ShardId } from './ports.js';

/**
 * How many shards this process may have, and which of them have a place: they are asked for, served or being given back. A shard without one waits in line,
 * and one that was asked for in vain goes to the end of the line, so that no free shard is overlooked for the sake of one that is held elsewhere.
 */
export class ShardShare {
  /** Rings when a place may have become free. */
  readonly changed = new Wakeup();
  readonly #placed = new Set<ShardId>();
  readonly #waiting = new Set<ShardId>();
  #share: number | null;

  constructor(share: number | null) {
    this.#share = share;
  }

  get share(): number | null {
    return this.#share;
  }

  /** Null: unknown. Returns whether it is another than before. */
  set(share: number | null): boolean {
    if (share === this.#share) return false;
    this.#share = share;
    this.changed.ring();
    return true;
  }

  /** A place for the shard, if there is one and its turn has come. */
  take(shard: ShardId): boolean {
    this.#waiting.add(shard);
    const step = shareStep({ share: this.#share, held: this.#placed.size });
    const places = step.kind === 'take' ? step.places : 0;
    if (![...this.#waiting].slice(0, places).includes(shard)) return false;
    this.#waiting.delete(shard);
    this.#placed.add(shard);
    return true;
  }

  free(shard: ShardId): void {
    if (this.#placed.delete(shard)) this.changed.ring();
  }
}
