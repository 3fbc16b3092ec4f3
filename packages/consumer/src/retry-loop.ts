import { Wakeup, sleep } from '@nightporter/protocol';
import { runsOf, settleRuns, togetherMax } from './drain.js';
import { wasTried } from './due-choice.js';
import { storeFailed, type Engine } from './engine.js';
import { parkedFailureOf } from './failure.js';
import { workOfClaim } from './incoming.js';
import type { ClaimRequest, ParkedEvent } from './ports.js';
import { park, type OneResult } from './settle-one.js';

/** What takes one slot: claims that run together, or one that runs with no other in its transaction. */
interface Batch {
  readonly claims: readonly ParkedEvent[];
  readonly isRepeated: boolean;
}

/**
 * Claims parked events whose turn has come and runs them, in several slots at once, together where nobody has tried them before. It looks
 * again as soon as a bell says that something has become due, which drains the events behind a mended one without waiting for the next look. One
 * slot is kept from events that have been tried before: handlers that hang must not keep those waiting that nothing ails. An event whose last
 * attempt ended without a word runs with no other beside it: should it be what ended the process, the next time nobody else is charged for that.
 */
export async function retryLoop<Session>(engine: Engine<Session>): Promise<void> {
  const { circuit, due, options, ports, stopping } = engine;
  const running = new Set<Promise<void>>();
  const slots = Array.from({ length: options.retryConcurrency }, (_, slot) => slot);
  const slotFree = new Wakeup();
  const repeatedMax = Math.max(1, options.retryConcurrency - 1);
  let repeated = 0;
  const start = ({ claims, isRepeated }: Batch, slot: number): void => {
    if (isRepeated) repeated += 1;
    const run = runBatch(engine, claims, slot).finally(() => {
      running.delete(run);
      slots.push(slot);
      // Others of its kind may have been left where they are.
      if (isRepeated && repeated === repeatedMax) engine.due.ring();
      if (isRepeated) repeated -= 1;
      slotFree.ring();
    });
    // Whatever it rejects with ends the consumer, through the Promise.all below or here while the loop goes on.
    run.catch(engine.fail);
    running.add(run);
  };
  while (await circuit.whenClosed(stopping)) {
    if (slots.length === 0) {
      await sleep(ports.clock, options.claimMs, slotFree, stopping);
      continue;
    }
    if (circuit.holdersFirstMs > 0) {
      await sleep(ports.clock, circuit.holdersFirstMs, stopping);
      continue;
    }
    const limits = { limit: slots.length, repeatedLimit: repeatedMax - repeated, isAlone: running.size === 0 };
    const claimed = await claimDue(engine, { ...limits, togetherMax: togetherMax(engine) });
    const taken = slots.splice(0);
    for (const batch of batchesOf(claimed, taken.length)) start(batch, taken.pop() ?? 0);
    slots.push(...taken);
    if (claimed.some(({ isUnanswered }) => isUnanswered === true)) await Promise.allSettled(running);
    if (claimed.length === 0) await due.wait(engine, options.retryPollMs);
  }
  await Promise.all(running);
}

/** Those that nobody has tried share the slots that the others leave. */
function batchesOf(claimed: readonly ParkedEvent[], slots: number): readonly Batch[] {
  const alone = claimed.filter(wasTried).map((claim): Batch => ({ claims: [claim], isRepeated: true }));
  const fresh = claimed.filter((claim) => !wasTried(claim));
  const size = Math.max(1, Math.ceil(fresh.length / Math.max(1, slots - alone.length)));
  const together: Batch[] = [];
  for (let first = 0; first < fresh.length; first += size) {
    together.push({ claims: fresh.slice(first, first + size), isRepeated: false });
  }
  return [...alone, ...together];
}

async function claimDue<Session>(
  engine: Engine<Session>,
  limits: Omit<ClaimRequest, 'claimMs'>,
): Promise<readonly ParkedEvent[]> {
  const { circuit, options, ports } = engine;
  try {
    const claimed = await ports.parked.claimDue({ ...limits, claimMs: options.claimMs });
    circuit.succeeded();
    return claimed;
  } catch (error) {
    storeFailed(engine, 'claim', error);
    return [];
  }
}

async function runBatch<Session>(engine: Engine<Session>, claims: readonly ParkedEvent[], slot: number): Promise<void> {
  const { counters, stopping } = engine;
  counters.inHand('claimsInHand', claims.length);
  try {
    const left = stopping.rungForGood ? claims : await settleClaims(engine, claims, slot);
    if (left.length > 0) await giveBack(engine, left);
  } finally {
    counters.inHand('claimsInHand', -claims.length);
  }
}

/** Resolves to the claims that did not run. */
async function settleClaims<Session>(
  engine: Engine<Session>,
  claims: readonly ParkedEvent[],
  slot: number,
): Promise<readonly ParkedEvent[]> {
  const { attemptsMax } = engine.options;
  const spent = claims.find(({ attempts }) => attempts > attemptsMax);
  if (spent === undefined) return settleRuns(engine, await runsOf(engine, claims), slot);
  return (await parkSpent(engine, spent)) === 'abandoned' ? [spent] : [];
}

/** Each claim was counted before its handler ran, and no failure was recorded for the last: its process did not live to. */
function parkSpent<Session>(engine: Engine<Session>, claim: ParkedEvent): Promise<OneResult> {
  const { attemptsMax } = engine.options;
  const work = workOfClaim(claim, { handlers: engine.handlers, read: engine.options.read });
  const message = `Its ${attemptsMax} attempts are spent, and the last one ended without an answer: the process may have died in the handler.`;
  const failure = parkedFailureOf(new Error(message));
  return park(engine, work, {
    state: 'dead',
    attempts: attemptsMax,
    retryInMs: null,
    failure: { ...failure, stack: null },
    // Also after an operator's retry it must not run with others.
    isSuspect: true,
  });
}

/** Claims that did not run are not counted. If this fails, they run out by themselves. */
async function giveBack<Session>(engine: Engine<Session>, claims: readonly ParkedEvent[]): Promise<void> {
  try {
    await engine.ports.parked.giveBack(claims);
  } catch (error) {
    storeFailed(engine, 'give-back', error);
  }
}

/** Looks, now and then, for parked events that are next in line but that nobody woke. */
export async function scanLoop<Session>(engine: Engine<Session>): Promise<void> {
  const { circuit, due, options, ports, stopping } = engine;
  while (await circuit.whenClosed(stopping)) {
    try {
      const count = await ports.parked.wake({ olderThanMs: options.scanAgeMs, limit: options.scanMax });
      circuit.succeeded();
      if (count > 0) {
        engine.tell({ kind: 'woken', count });
        due.ring();
      }
    } catch (error) {
      storeFailed(engine, 'wake', error);
    }
    await sleep(ports.clock, options.scanEveryMs, stopping);
  }
}
