import { askLedgers, type Answered } from './ask-ledgers.js';
import { byLedger } from './decision.js';
import type { Engine } from './engine.js';
import { classify } from './failure.js';
import { workOfLedger, type EventWork, type Work } from './incoming.js';
import type { GroupProducer, LedgerPlace } from './ledger-ports.js';
import { settle } from './settle.js';

/** What came of a step: `brought` once everything that could be had is settled or parked. */
export interface Brought {
  readonly kind: 'brought' | 'not-brought';
  /** What could not be had. */
  readonly unavailable: readonly Answered[];
}

/** Parks what the producers have at these places, a few at a time, each in the transaction that decides it. Runs nothing. */
export async function bring<Session>(
  engine: Engine<Session>,
  producers: readonly GroupProducer[],
  places: readonly LedgerPlace[],
): Promise<Brought> {
  const { ledgerBatchMax } = engine.options;
  const unavailable: Answered[] = [];
  let isBrought = true;
  for (let start = 0; start < places.length; start += ledgerBatchMax) {
    if (engine.stopping.rungForGood) return { kind: 'not-brought', unavailable };
    const works: EventWork[] = [];
    for (const answered of await askLedgers(producers, places.slice(start, start + ledgerBatchMax))) {
      if (answered.answer.kind === 'published') {
        works.push(workOfLedger(answered.answer.event, { handlers: engine.handlers, read: engine.options.read }));
      } else unavailable.push(answered);
    }
    if (!(await parkAll(engine, works))) isBrought = false;
  }
  return { kind: isBrought ? 'brought' : 'not-brought', unavailable };
}

/** In one transaction, or, where that conflicts too often, one by one, so that one that cannot commit keeps no other. False when something is not durable. */
export async function parkAll<Session>(engine: Engine<Session>, works: readonly Work[]): Promise<boolean> {
  const { hardshipsMax } = engine.options;
  for (let rest = works; rest.length > 0;) {
    const result = await settle(engine, rest, { decide: byLedger, hardshipsMax });
    if (result.kind === 'committed') rest = rest.slice(result.count);
    else if (result.kind === 'abandoned' || rest.length === 1) return false;
    else {
      const alone: boolean[] = [];
      for (const work of rest) alone.push(await parkAll(engine, [work]));
      return !alone.includes(false);
    }
  }
  return true;
}

/** A round could not be carried out: told, and left to the next one. Consuming goes on. */
export function ledgerFailed<Session>(engine: Engine<Session>, operation: string, error: unknown): void {
  if (classify(error) === 'broken') throw error;
  engine.tell({ kind: 'ledger-unavailable', operation, error });
}
