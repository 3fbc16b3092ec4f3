import type { OutboxRow } from '@nightporter/contracts';
import { Wakeup, laneKeyOf, sleep, type AggregateVersion, type Delivery, type Slot } from '@nightporter/protocol';
import { OVER, type Over } from './database-calls.js';
import type { MissedRows } from './missed-rows.js';
import type { SweepCursor } from './ports.js';
import type { SessionContext } from './session-context.js';
import { anyOf } from './waiting.js';

/** Behind every version that an aggregate can have. */
const BEYOND = Number.MAX_SAFE_INTEGER as AggregateVersion;

/**
 * Reads all unsettled rows, slot by slot and page by page in the order of aggregate and version, as fast as the lanes have room.
 * It finds what the stream did not bring, and reads held lanes again.
 */
export class Sweeper {
  readonly #context: SessionContext;
  readonly #missed: MissedRows;
  readonly #requested = new Wakeup();
  #isRequested = false;

  constructor(context: SessionContext, missed: MissedRows) {
    this.#context = context;
    this.#missed = missed;
  }

  /** Has the next regular sweep begin at once. */
  request(): void {
    this.#isRequested = true;
    this.#requested.ring();
  }

  /** Sweeps every `sweepEveryMs`, or earlier on request, until the session is over. */
  async sweepRegularly(): Promise<void> {
    const { ports, options, isOver } = this.#context;
    while (!isOver()) {
      await this.rest(options.sweepEveryMs);
      await this.#sweep((row, lowest) => {
        const nowMs = ports.clock.now();
        const sighting = this.#offer(row, { lowest, delivery: null, inherited: false });
        if (sighting === 'new' && row.status === 'PENDING') this.#missed.foundBySweep(row.eventId, nowMs);
      });
    }
  }

  /**
   * Sweeps, and waits until every row that it found is durably marked or held: only then does a token of the stream cover
   * nothing that is not. `inherited` when an earlier owner may have sent what is found. Returns the number of rows.
   */
  async sweepUntilSettled({ inherited }: { inherited: boolean }): Promise<number | Over> {
    const { over, isOver } = this.#context;
    const open = new OpenRows();
    const rows = await this.#sweep((row, lowest) => {
      this.#offer(row, { lowest, delivery: open.add(), inherited });
    });
    while (rows !== OVER && open.count > 0 && !isOver()) await anyOf(open.settled, over);
    return isOver() ? OVER : rows;
  }

  /** Waits so long, or until a sweep is requested or the session is over. */
  async rest(forMs: number): Promise<void> {
    const { ports, over } = this.#context;
    if (!this.#isRequested) await sleep(ports.clock, forMs, this.#requested, over);
    this.#isRequested = false;
  }

  /** Sweeps the slots that have something to read. `inherited`: see {@link sweepUntilSettled}. */
  async sweepBusySlots({ inherited }: { inherited: boolean }): Promise<number | Over> {
    const { calls, ports, shard } = this.#context;
    const slots = await calls.untilDone('polling.busySlots', () => ports.polling.busySlots(shard.slots));
    if (slots === OVER) return OVER;
    return await this.#sweep((row, lowest) => {
      this.#offer(row, { lowest, delivery: null, inherited });
    }, slots);
  }

  #offer(row: OutboxRow, how: { lowest: boolean; delivery: Delivery | null; inherited: boolean }): 'known' | 'new' {
    const { lanes, ports } = this.#context;
    const nowMs = ports.clock.now();
    // What was once in a lane that had to be forgotten may have been inherited.
    const inherited = how.inherited || lanes.heldLanesForgotten > 0;
    return lanes.offer({ ...how, row, inherited, sightedAtMs: nowMs, inOutbox: true }, nowMs);
  }

  async #sweep(
    take: (row: OutboxRow, lowest: boolean) => void,
    slots = this.#context.shard.slots,
  ): Promise<number | Over> {
    const { progress } = this.#context;
    let rows = 0;
    for (const slot of slots) {
      const found = await this.#sweepSlot(slot, take);
      if (found === OVER) return OVER;
      rows += found;
    }
    progress.counts.sweeps += 1;
    return rows;
  }

  async #sweepSlot(slot: Slot, take: (row: OutboxRow, lowest: boolean) => void): Promise<number | Over> {
    const { calls, ports, options, progress, pump } = this.#context;
    const limit = options.capture === 'polling' ? options.pollBatchMax : options.sweepPageMax;
    let after: SweepCursor | null = null;
    let lane: string | null = null;
    let rows = 0;
    for (;;) {
      await this.#waitForRoom();
      const request = { slot, after, limit };
      const page = await calls.untilDone('reader.readUnsettled', () => ports.reader.readUnsettled(request));
      if (page === OVER) return OVER;
      progress.aheadAtMs = ports.clock.now();
      for (const row of page) {
        const key = laneKeyOf(row);
        take(row, key !== lane);
        lane = key;
      }
      rows += page.length;
      pump();
      const last = page.at(-1);
      if (last === undefined || page.length < limit) return rows;
      after = this.#cursorBehind(last);
    }
  }

  /** What else a held lane has would only be deferred. */
  #cursorBehind(row: OutboxRow): SweepCursor {
    const { namespace, source, aggregateType, aggregateId, aggregateVersion } = row;
    const version = this.#context.lanes.isHeldBelow(row) ? BEYOND : aggregateVersion;
    return { namespace, source, aggregateType, aggregateId, aggregateVersion: version };
  }

  async #waitForRoom(): Promise<void> {
    const { lanes, room, over, isOver } = this.#context;
    while (!lanes.hasRoom && !isOver()) await anyOf(room, over);
  }
}

/** Counts rows that are not yet settled. */
class OpenRows {
  readonly settled = new Wakeup();
  #count = 0;

  get count(): number {
    return this.#count;
  }

  add(): Delivery {
    this.#count += 1;
    return {
      settle: () => {
        this.#count -= 1;
        if (this.#count === 0) this.settled.ring();
      },
    };
  }
}
