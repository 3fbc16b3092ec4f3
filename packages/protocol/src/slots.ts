import { slot, type Slot } from './ids.js';

/** Slots divide the outbox for sweeps and for sharing it out over relays. The number is part of the data: it never changes. */
export const SLOT_COUNT = 64;

/** All slots, in order. */
export const ALL_SLOTS: readonly Slot[] = Array.from({ length: SLOT_COUNT }, (_, index) => slot(index));

/** The slot of an event key: FNV-1a (32 bit) over its UTF-16 code units, low byte first. */
export function slotOf(eventKey: string): Slot {
  let hash = 0x811c9dc5;
  for (let index = 0; index < eventKey.length; index += 1) {
    const unit = eventKey.charCodeAt(index);
    hash = Math.imul(hash ^ (unit & 0xff), 0x01000193);
    hash = Math.imul(hash ^ (unit >>> 8), 0x01000193);
  }
  return slot((hash >>> 0) % SLOT_COUNT);
}

/** The slots of one of `shards` shards (1 to 64): ranges that follow each other, whose lengths differ by one at most. */
export function slotsOfShard({ shard, shards }: { shard: number; shards: number }): readonly Slot[] {
  return ALL_SLOTS.filter((candidate) => Math.floor((candidate * shards) / SLOT_COUNT) === shard);
}
