import { BATCH_HARDSHIPS_MAX } from './batch.js';
import { byVerdict } from './decision.js';
import { storeFailed, type Engine } from './engine.js';
import { workOfClaim, type EventWork, type Reader } from './incoming.js';
import type { ParkedEvent } from './ports.js';
import { settle } from './settle.js';
import { parkFailed, settleOne, type OneResult } from './settle-one.js';
import { beginBatch, loopOfClaim } from './started.js';

/** A claimed event, and the parked events right behind it that may run with it, in their order. */
export interface Run {
  readonly claim: ParkedEvent;
  readonly behind: readonly ParkedEvent[];
}

/**
 * Finds what may run together with each claim. Nothing runs with a claim that has been tried before, nor where it does not go on record first
 * which events are about to run: should the process die, nobody would know whom not to run together again.
 */
export async function runsOf<Session>(
  engine: Engine<Session>,
  claimed: readonly ParkedEvent[],
): Promise<readonly Run[]> {
  const { options, ports } = engine;
  const fresh = claimed.filter(({ attempts }) => attempts === 1);
  const behind = new Map<ParkedEvent, readonly ParkedEvent[]>();
  if (ports.started !== undefined && options.commitMax > 1 && fresh.length > 0) {
    const places = fresh.map(({ event: { aggregate, envelope } }) => ({
      aggregate,
      version: envelope.aggregateVersion,
    }));
    try {
      const found = await ports.parked.behind(places, options.commitMax - 1);
      for (const [index, claim] of fresh.entries()) behind.set(claim, found[index] ?? []);
    } catch (error) {
      // They have their turn after the claim, one by one.
      storeFailed(engine, 'behind', error);
    }
  }
  return claimed.map((claim) => ({ claim, behind: behind.get(claim) ?? [] }));
}

/**
 * Settles a claim and what is parked right behind it in one transaction. Of those behind, whatever does not commit with it stays parked
 * untouched, and has its turn by itself, where its attempts count.
 */
export async function settleRun<Session>(engine: Engine<Session>, run: Run, slot: number): Promise<OneResult> {
  const reader = { handlers: engine.handlers, read: engine.options.read };
  const head = workOfClaim(run.claim, reader);
  const together = await beginRun(engine, { works: worksOf(head, run, reader), slot });
  for (let count = together.length; count > 1;) {
    const works = together.slice(0, count);
    const result = await settle(engine, works, { decide: byVerdict, hardshipsMax: BATCH_HARDSHIPS_MAX });
    switch (result.kind) {
      case 'committed':
        return 'durable';
      case 'abandoned':
        return 'abandoned';
      case 'failed':
        if (result.at === 0) return parkFailed(engine, head, result.error);
        count = result.at ?? 1;
        break;
      case 'hard':
      case 'lost':
        count = 1;
        break;
    }
  }
  return settleOne(engine, head);
}

/**
 * Those behind come as claims of this process, which nobody else can have: only the transaction that settles their predecessor gives them their
 * turn. What can only become a dead letter runs alone, since it holds what follows.
 */
function worksOf<Session>(head: EventWork, run: Run, reader: Reader<Session>): readonly EventWork[] {
  const behind = run.behind.map((parked) => workOfClaim({ ...parked, attempts: 1 }, reader));
  const works = [head, ...behind];
  const firstDefect = works.findIndex(({ content }) => content.kind === 'defect');
  return works.slice(0, firstDefect === -1 ? works.length : Math.max(1, firstDefect));
}

/** Cut where an event is on record of another process: it may have ended that, and runs alone. */
async function beginRun<Session>(
  engine: Engine<Session>,
  { works, slot }: { works: readonly EventWork[]; slot: number },
): Promise<readonly EventWork[]> {
  if (works.length === 1) return works;
  const begun = (await beginBatch(engine, loopOfClaim(engine, slot), works)) ?? [];
  const firstSuspect = begun.findIndex((work) => work.kind === 'event' && work.isSuspect);
  return works.slice(0, firstSuspect === -1 ? begun.length : firstSuspect);
}
