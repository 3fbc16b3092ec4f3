import { isNightporterError } from '@nightporter/protocol';
import { byVerdict } from './decision.js';
import type { Engine } from './engine.js';
import type { EventWork, Work } from './incoming.js';
import { parkFailed, settleOne, type OneResult } from './settle-one.js';
import { settle } from './settle.js';

/** A batch that conflicts so often in a row is split: only the part with the contended document then goes on conflicting. */
export const BATCH_HARDSHIPS_MAX = 3;

/** Messages that go into one transaction, or one event that has failed and only needs to be parked. */
type Segment =
  | { readonly kind: 'open'; readonly works: readonly Work[] }
  | { readonly kind: 'failed'; readonly work: EventWork; readonly error: unknown };

/**
 * Settles a batch, of the broker or of the ledger, in its order and returns how many of it, from the first on, have a durable outcome:
 * all, unless the consumer stops. Up to `commitMax` of it is one transaction while nothing goes wrong; a message that fails is
 * set apart, so that only it is parked and the others commit.
 */
export async function settleBatch<Session>(
  engine: Engine<Session>,
  works: readonly Work[],
  { commitMax }: { commitMax: number },
): Promise<number> {
  const segments: Segment[] = [...inParts(works, commitMax)];
  let durable = 0;
  for (let segment = segments.shift(); segment !== undefined; segment = segments.shift()) {
    const single = singleOf(segment);
    if (single !== null) {
      if ((await settleSingle(engine, single)) === 'abandoned') return durable;
      durable += 1;
    } else if (segment.kind === 'open' && segment.works.length > 0) {
      const hardshipsMax = Math.min(BATCH_HARDSHIPS_MAX, engine.options.hardshipsMax);
      const result = await settle(engine, segment.works, { decide: byVerdict, hardshipsMax });
      switch (result.kind) {
        case 'committed':
          durable += result.count;
          segments.unshift({ kind: 'open', works: segment.works.slice(result.count) });
          break;
        case 'failed':
          segments.unshift(...setApart(segment.works, result));
          break;
        case 'hard':
          segments.unshift(...halves(segment.works));
          break;
        case 'lost':
        case 'abandoned':
          return durable;
      }
    }
  }
  return durable;
}

type Single = { readonly kind: 'open'; readonly work: Work } | Extract<Segment, { kind: 'failed' }>;

function singleOf(segment: Segment): Single | null {
  if (segment.kind === 'failed') return segment;
  const [work] = segment.works;
  return work !== undefined && segment.works.length === 1 ? { kind: 'open', work } : null;
}

function settleSingle<Session>(engine: Engine<Session>, single: Single): Promise<OneResult> {
  if (single.kind === 'failed') return parkFailed(engine, single.work, single.error);
  return settleOne(engine, single.work);
}

/** Whether no earlier handler in the transaction can have to do with it: it was the first, or took longer than its limit. */
export function isItsOwnFailure({ at, error }: { at: number; error: unknown }): boolean {
  return at === 0 || isNightporterError(error, 'NP_HANDLER_FAILED');
}

/**
 * The message whose handler failed, between what stands before and behind it. It runs again, alone, where an earlier handler in
 * its transaction may have to do with the failure.
 */
function setApart(works: readonly Work[], { at, error }: { at: number | null; error: unknown }): readonly Segment[] {
  const failed = at === null ? undefined : works[at];
  if (at === null || failed?.kind !== 'event') return halves(works);
  return [
    { kind: 'open', works: works.slice(0, at) },
    isItsOwnFailure({ at, error }) ? { kind: 'failed', work: failed, error } : { kind: 'open', works: [failed] },
    { kind: 'open', works: works.slice(at + 1) },
  ];
}

function inParts(works: readonly Work[], worksMax: number): readonly Segment[] {
  const parts: Segment[] = [];
  for (let start = 0; start < works.length; start += worksMax) {
    parts.push({ kind: 'open', works: works.slice(start, start + worksMax) });
  }
  return parts;
}

function halves(works: readonly Work[]): readonly Segment[] {
  const half = Math.ceil(works.length / 2);
  return [
    { kind: 'open', works: works.slice(0, half) },
    { kind: 'open', works: works.slice(half) },
  ];
}
