import { Fifo } from '@nightporter/protocol';
import { OVER } from './database-calls.js';
import type { RepairRecord } from './ports.js';
import type { SessionContext } from './session-context.js';

/** Repairs that wait to be recorded at most; whatever is beyond it is told to the observer only. */
const WAITING_MAX = 100;

/** Tells of repairs, counts them, and keeps a record of each. */
export class Repairs {
  readonly #context: SessionContext;
  readonly #waiting = new Fifo<RepairRecord>();
  #recording = false;

  constructor(context: SessionContext) {
    this.#context = context;
  }

  add(reason: string, rows: number): void {
    const { ports, shard, epoch, options, progress, spawn } = this.#context;
    progress.repaired(reason);
    ports.observe({ kind: 'repaired', shard: shard.id, reason, rows });
    if (this.#waiting.size >= WAITING_MAX) return;
    this.#waiting.push({ shard: shard.id, epoch, owner: options.owner, reason, rows });
    if (this.#recording) return;
    this.#recording = true;
    spawn(this.#recordAll());
  }

  async #recordAll(): Promise<void> {
    const { calls, ports } = this.#context;
    for (let repair = this.#waiting.shift(); repair !== undefined; repair = this.#waiting.shift()) {
      const record = repair;
      if ((await calls.untilDone('repairs.record', () => ports.repairs.record(record))) === OVER) return;
    }
    this.#recording = false;
  }
}
