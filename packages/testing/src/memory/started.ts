import type { StartedRecords } from '@nightporter/consumer';
import type { EventId } from '@nightporter/protocol';

type Batch = Parameters<StartedRecords['begin']>[0];

/** `started` of one group: what each receive loop of each process start has in hand. */
export class MemoryStarted {
  readonly #records = new Map<string, Batch>();

  begin(batch: Batch): readonly EventId[] {
    this.#records.set(`${batch.owner} ${batch.loop}`, batch);
    const others = [...this.#records.values()].filter((record) => record.owner !== batch.owner);
    return batch.events.filter((eventId) => others.some((record) => record.events.includes(eventId)));
  }
}
