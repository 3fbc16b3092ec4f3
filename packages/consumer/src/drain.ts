import { BATCH_HARDSHIPS_MAX, isItsOwnFailure } from './batch.js';
import { byVerdict } from './decision.js';
import { wasTried } from './due-choice.js';
import { storeFailed, type Engine } from './engine.js';
import { workOfClaim, type EventWork } from './incoming.js';
import type { ParkedEvent } from './ports.js';
import { settle } from './settle.js';
import { parkFailed, settleOne, type OneResult } from './settle-one.js';
import { beginBatch, loopOfClaim } from './started.js';

/** A claimed event, and what is parked right behind it in the same aggregate and may run with it, in its order: the claim's work comes first. */
export interface Run {
  readonly claim: ParkedEvent;
  readonly works: readonly [EventWork, ...EventWork[]];
}

/**
 * How many claims that nobody has tried before may share a transaction. None where it does not go on record first which events are about to run:
 * should the process die, nobody would know whom not to run together again. Nor where a death of another costs an event its only attempt, or where
 * a claim may run out while others of its transaction run.
 */
export function togetherMax<Session>({ options, ports }: Engine<Session>): number {
  const { attemptsMax, claimMs, commitMax, handlerMs, transactionMs } = options;
  const mayShare = ports.started !== undefined && attemptsMax > 1 && claimMs > 4 * transactionMs + 2 * handlerMs;
  return mayShare ? commitMax : 1;
}

/** Adds to claims that nobody has tried before what waits right behind them; all of it is at most one transaction's. */
export async function runsOf<Session>(
  engine: Engine<Session>,
  claims: readonly ParkedEvent[],
): Promise<readonly Run[]> {
  const reader = { handlers: engine.handlers, read: engine.options.read };
  const found = await waitingBehind(engine, claims);
  return claims.map((claim, index) => {
    const head = workOfClaim(claim, reader);
    // As claims: they run in the transaction that settles their predecessor, and only as they were read.
    const behind = (found[index] ?? []).map((parked) => workOfClaim({ ...parked, attempts: 1 }, reader));
    const firstDefect = [head, ...behind].findIndex(({ content }) => content.kind === 'defect');
    // What can only become a dead letter holds what follows.
    return {
      claim,
      works: [head, ...behind.slice(0, firstDefect === -1 ? behind.length : Math.max(0, firstDefect - 1))],
    };
  });
}

async function waitingBehind<Session>(
  engine: Engine<Session>,
  claims: readonly ParkedEvent[],
): Promise<readonly (readonly ParkedEvent[])[]> {
  const limit = Math.floor(togetherMax(engine) / claims.length) - 1;
  if (limit < 1 || claims.some(wasTried)) return [];
  const places = claims.map(({ event: { aggregate, envelope } }) => ({
    aggregate,
    version: envelope.aggregateVersion,
  }));
  try {
    return await engine.ports.parked.behind(places, limit);
  } catch (error) {
    // They have their turn after the claim, one by one.
    storeFailed(engine, 'behind', error);
    return [];
  }
}

/**
 * Settles claims, and what is parked right behind them, in one transaction while nothing goes wrong. Of those behind, whatever does not commit
 * stays parked untouched, and has its turn by itself, where its attempts count. Resolves to the claims that did not run.
 */
export async function settleRuns<Session>(
  engine: Engine<Session>,
  runs: readonly Run[],
  slot: number,
): Promise<readonly ParkedEvent[]> {
  const { clock } = engine.ports;
  const { alone, together } = await beginRuns(engine, runs, slot);
  const isLate = lateAfter(() => clock.now(), engine.options.transactionMs);
  const left = [...(await settleTogether(engine, together, isLate))];
  for (const run of alone) {
    // What goes back so has a slot of its own the next time.
    left.push(...(isLate() ? [{ ...run.claim, isSuspect: true }] : await settleAlone(engine, run)));
  }
  return left;
}

function lateAfter(now: () => number, forMs: number): () => boolean {
  const endsAt = now() + forMs;
  return () => now() >= endsAt;
}

/** An event on record of another process may have ended that: it runs alone, and what is behind one runs later. */
async function beginRuns<Session>(
  engine: Engine<Session>,
  runs: readonly Run[],
  slot: number,
): Promise<{ alone: readonly Run[]; together: readonly Run[] }> {
  const works = runs.flatMap((run) => run.works);
  if (works.length === 1) return { alone: runs, together: [] };
  const begun = (await beginBatch(engine, loopOfClaim(engine, slot), works)) ?? [];
  const isTrusted = new Set(
    begun.flatMap((work) => (work.kind === 'event' && !work.isSuspect ? [work.event.envelope.eventId] : [])),
  );
  const together = runs.flatMap(({ claim, works: [head, ...behind] }): Run[] => {
    const trusted = [head, ...behind].findIndex(({ event }) => !isTrusted.has(event.envelope.eventId));
    if (trusted === 0) return [];
    return [{ claim, works: [head, ...(trusted === -1 ? behind : behind.slice(0, trusted - 1))] }];
  });
  const claims = new Set(together.map(({ claim }) => claim));
  return { alone: runs.filter(({ claim }) => !claims.has(claim)).map(headOf), together };
}

function headOf({ claim, works: [head] }: Run): Run {
  return { claim, works: [head] };
}

/**
 * Claims run out: once a transaction has taken its time, what is left goes back and is due at once. Before that, at least one claim has an outcome,
 * so that the same claims do not come to the same end for ever.
 */
async function settleTogether<Session>(
  engine: Engine<Session>,
  runs: readonly Run[],
  isLate: () => boolean,
): Promise<readonly ParkedEvent[]> {
  const [first, ...others] = runs;
  if (first === undefined) return [];
  const works = runs.flatMap((run) => run.works);
  if (works.length === 1) return settleAlone(engine, first);
  const hardshipsMax = Math.min(BATCH_HARDSHIPS_MAX, engine.options.hardshipsMax);
  const result = await settle(engine, works, { decide: byVerdict, hardshipsMax, isLate });
  if (result.kind === 'abandoned') return claimsOf(runs);
  if (result.kind === 'committed') return inTurn(engine, [notBegun(runs, result.count)], isLate);
  if (result.kind === 'failed' && result.at !== null) {
    const { after, before, culprit, place } = apart(runs, result.at);
    const failure = { at: result.at, error: result.error };
    if (place === 0) {
      const left = await inTurn(engine, [before], isLate);
      return [...left, ...(await settleFailed(engine, culprit, failure)), ...(await inTurn(engine, [after], isLate))];
    }
    // The one behind it fails in a turn of its own, which it has once this one is settled.
    if (isLate()) return [...(await settleAlone(engine, culprit)), ...claimsOf([...before, ...after])];
    const [head, ...behind] = culprit.works;
    return inTurn(engine, [[...before, { ...culprit, works: [head, ...behind.slice(0, place - 1)] }], after], isLate);
  }
  if (isLate() || others.length === 0) return [...(await settleAlone(engine, first)), ...claimsOf(others)];
  const half = Math.ceil(runs.length / 2);
  return inTurn(engine, [runs.slice(0, half), runs.slice(half)], isLate);
}

async function inTurn<Session>(
  engine: Engine<Session>,
  parts: readonly (readonly Run[])[],
  isLate: () => boolean,
): Promise<readonly ParkedEvent[]> {
  const left: ParkedEvent[] = [];
  for (const part of parts) left.push(...(isLate() ? claimsOf(part) : await settleTogether(engine, part, isLate)));
  return left;
}

/** Runs of which nothing is among the first `settled` works. Where the first of a run is settled, what is left of it has its turn already. */
function notBegun(runs: readonly Run[], settled: number): readonly Run[] {
  let first = 0;
  return runs.filter(({ works }) => {
    const isBegun = first < settled;
    first += works.length;
    return !isBegun;
  });
}

/** The run in which a work failed, between the others; at which place of it. */
function apart(
  runs: readonly Run[],
  at: number,
): { before: readonly Run[]; culprit: Run; place: number; after: readonly Run[] } {
  let first = 0;
  for (const [index, culprit] of runs.entries()) {
    const place = at - first;
    first += culprit.works.length;
    if (at < first) return { before: runs.slice(0, index), culprit, place, after: runs.slice(index + 1) };
  }
  throw new Error(`No work has the index ${at}.`);
}

/** It runs again, alone, where an earlier handler in its transaction may have to do with the failure. */
async function settleFailed<Session>(
  engine: Engine<Session>,
  run: Run,
  failure: { at: number; error: unknown },
): Promise<readonly ParkedEvent[]> {
  if (!isItsOwnFailure(failure)) return settleAlone(engine, run);
  return unlessAbandoned(run, await parkFailed(engine, run.works[0], failure.error));
}

async function settleAlone<Session>(engine: Engine<Session>, run: Run): Promise<readonly ParkedEvent[]> {
  return unlessAbandoned(run, await settleOne(engine, run.works[0]));
}

function unlessAbandoned({ claim }: Run, result: OneResult): readonly ParkedEvent[] {
  return result === 'abandoned' ? [claim] : [];
}

function claimsOf(runs: readonly Run[]): readonly ParkedEvent[] {
  return runs.map(({ claim }) => claim);
}
