import { aggregateVersion, sleep, type AggregateKey } from '@nightporter/protocol';
import { storeFailed, type Engine } from './engine.js';
import type { AggregatePlace, Gap, GapFinder, GroupProducer } from './ledger-ports.js';
import type { Answered } from './ask-ledgers.js';
import { bring, ledgerFailed } from './ledger-work.js';

type FoundGaps = Awaited<ReturnType<GapFinder['find']>>;

/** Looks, all the time, for parked events whose predecessors do not come, and asks the ledger for those. */
export async function gapLoop<Session>(engine: Engine<Session>): Promise<void> {
  const { circuit, options, ports, stopping } = engine;
  const { ledgerSweep } = ports;
  if (ledgerSweep === undefined || ledgerSweep.producers.length === 0) return;
  const explained = new Explained();
  let after: AggregateKey | null = null;
  while (await circuit.whenClosed(stopping)) {
    const found: FoundGaps = await findGaps(engine, ledgerSweep.gaps, after);
    after = found.after;
    await closeGaps(engine, ledgerSweep.producers, { gaps: found.gaps, explained });
    if (after === null) {
      explained.roundIsOver();
      await sleep(ports.clock, options.gapEveryMs * (0.5 + ports.random() / 2), stopping);
    }
  }
}

async function findGaps<Session>(
  engine: Engine<Session>,
  finder: GapFinder,
  after: AggregateKey | null,
): Promise<FoundGaps> {
  const { gapMax, gapWaitMs } = engine.options;
  try {
    const found = await finder.find({ olderThanMs: gapWaitMs, after, limit: gapMax });
    engine.circuit.succeeded();
    return found;
  } catch (error) {
    storeFailed(engine, 'find-gaps', error);
    return { gaps: [], after: null };
  }
}

async function closeGaps<Session>(
  engine: Engine<Session>,
  producers: readonly GroupProducer[],
  { gaps, explained }: { gaps: readonly Gap[]; explained: Explained },
): Promise<void> {
  try {
    const places = gaps.flatMap((gap) => placesOf(gap, engine.options.ledgerBatchMax));
    const { unavailable } = await bring(engine, producers, places);
    for (const { place, answer } of unavailable.filter((answered) => explained.isNew(answered))) {
      if (answer.kind !== 'published') engine.tell({ kind: 'version-unavailable', ...place, reason: answer.kind });
    }
  } catch (error) {
    ledgerFailed(engine, 'gaps', error);
  }
}

/** The first versions that are missing; once they are settled, the others show. */
function placesOf({ aggregate, from, to }: Gap, placesMax: number): readonly AggregatePlace[] {
  const count = Math.min(placesMax, to - from + 1);
  return Array.from({ length: count }, (_, index) => ({ aggregate, version: aggregateVersion(from + index) }));
}

const EXPLAINED_MAX = 10_000;

/** What was told in the last round, so that a version that stays unavailable is told once. */
class Explained {
  #last = new Set<string>();
  #now = new Set<string>();

  isNew({ place, answer }: Answered): boolean {
    const key = `${place.aggregate}#${place.version} ${answer.kind}`;
    if (this.#now.size < EXPLAINED_MAX) this.#now.add(key);
    return !this.#last.has(key);
  }

  roundIsOver(): void {
    this.#last = this.#now;
    this.#now = new Set();
  }
}
