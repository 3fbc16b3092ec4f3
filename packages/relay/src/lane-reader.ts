import type { OutboxRow } from '@nightporter/contracts';
import { laneKeyOf, notShown, type EventId, type LaneReading } from '@nightporter/protocol';
import { OVER, type Over } from './database-calls.js';
import type { SessionContext } from './session-context.js';

const NOTHING: ReadonlyMap<EventId, OutboxRow | 'archived' | 'missing'> = new Map();

/** Reads from the outbox what the lanes want to know, many lanes at once, one query at a time. */
export class LaneReader {
  readonly #context: SessionContext;
  readonly #onRead: () => void;
  #reading = false;

  constructor(context: SessionContext, onRead: () => void) {
    this.#context = context;
    this.#onRead = onRead;
  }

  wake(): void {
    if (this.#reading) return;
    const { lanes, options, spawn } = this.#context;
    const first = lanes.nextReads(options.laneReadMax);
    if (first.lanes.length === 0) return;
    this.#reading = true;
    spawn(this.#readAll(first));
  }

  async #readAll(first: LaneReading<OutboxRow>): Promise<void> {
    const { lanes, options, pump } = this.#context;
    for (let reading = first; reading.lanes.length > 0; reading = lanes.nextReads(options.laneReadMax)) {
      if ((await this.#read(reading)) === OVER) return;
      this.#onRead();
      pump();
    }
    this.#reading = false;
  }

  async #read({ lanes: wanted, limit }: LaneReading<OutboxRow>): Promise<Over | null> {
    const { lanes, calls, ports } = this.#context;
    const keys = wanted.map(({ namespace, aggregate }) => ({ namespace, aggregate }));
    const rows = await calls.untilDone('reader.readLanes', () => ports.reader.readLanes(keys, limit));
    if (rows === OVER) return OVER;
    const rowsOf = byLane(rows);
    const unshown = wanted.flatMap((lane) => notShown(lane, rowsOf(lane.key), limit).map((item) => item.row));
    const lookUp = () => ports.reader.lookUp(unshown);
    const lookedUp = unshown.length === 0 ? NOTHING : await calls.untilDone('reader.lookUp', lookUp);
    if (lookedUp === OVER) return OVER;
    const nowMs = ports.clock.now();
    for (const lane of wanted) lanes.refresh(lane, { rows: rowsOf(lane.key), limit, lookedUp }, nowMs);
    return null;
  }
}

function byLane(rows: readonly OutboxRow[]): (laneKey: string) => readonly OutboxRow[] {
  const grouped = new Map<string, OutboxRow[]>();
  for (const row of rows) {
    const key = laneKeyOf(row);
    const lane = grouped.get(key);
    if (lane === undefined) grouped.set(key, [row]);
    else lane.push(row);
  }
  return (laneKey) => grouped.get(laneKey) ?? [];
}
