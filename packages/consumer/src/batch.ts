import { byVerdict } from './decision.js';
import type { Engine } from './engine.js';
import type { Work } from './incoming.js';
import { parkFailed, settleOne } from './settle-one.js';
import { settle } from './settle.js';

/**
 * Settles the messages of one receive in their order and returns how many of them, from the first on, have a durable outcome:
 * all, unless the consumer stops. A batch is one transaction while nothing goes wrong; a message that fails is
 * set apart, so that only it is parked and the others commit.
 */
export async function settleBatch<Session>(engine: Engine<Session>, works: readonly Work[]): Promise<number> {
  const segments: (readonly Work[])[] = [works];
  let durable = 0;
  for (let segment = segments.shift(); segment !== undefined; segment = segments.shift()) {
    const [only] = segment;
    if (only === undefined) continue;
    if (segment.length === 1) {
      if ((await settleOne(engine, only)) === 'abandoned') return durable;
      durable += 1;
      continue;
    }
    const result = await settle(engine, segment, { decide: byVerdict, hardshipsMax: engine.options.hardshipsMax });
    switch (result.kind) {
      case 'committed':
        durable += result.count;
        segments.unshift(segment.slice(result.count));
        break;
      case 'failed':
        if (result.at === 0 && only.kind === 'event') {
          // No other handler ran before it in its transaction: the failure is its own.
          if ((await parkFailed(engine, only, result.error)) === 'abandoned') return durable;
          durable += 1;
          segments.unshift(segment.slice(1));
        } else {
          segments.unshift(...splitAt(segment, result.at));
        }
        break;
      case 'hard':
        segments.unshift(...splitAt(segment, null));
        break;
      case 'lost':
      case 'abandoned':
        return durable;
    }
  }
  return durable;
}

/** The message at `index` alone between what stands before and behind it; halves where nobody knows which one failed. */
function splitAt(segment: readonly Work[], index: number | null): readonly (readonly Work[])[] {
  if (index === null) {
    const half = Math.ceil(segment.length / 2);
    return [segment.slice(0, half), segment.slice(half)];
  }
  return [segment.slice(0, index), segment.slice(index, index + 1), segment.slice(index + 1)];
}
