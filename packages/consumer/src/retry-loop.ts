import { Wakeup, sleep } from '@nightporter/protocol';
import { runsOf, settleRun, type Run } from './drain.js';
import { storeFailed, type Engine } from './engine.js';
import { parkedFailureOf } from './failure.js';
import { workOfClaim } from './incoming.js';
import type { ClaimRequest, ParkedEvent } from './ports.js';
import { park, type OneResult } from './settle-one.js';

/**
 * Claims parked events whose turn has come and runs them, several at once. It looks again as soon as a bell says that
 * something has become due, which drains the events behind a mended one without waiting for the next look; those run together with it
 * where they may. One slot is kept from events
 * that have been tried before: handlers that hang must not keep those waiting that nothing ails. An event whose last attempt ended without a word
 * runs with no other beside it: should it be what ended the process, the next time nobody else is charged for that.
 */
export async function retryLoop<Session>(engine: Engine<Session>): Promise<void> {
  const { circuit, counters, due, options, ports, stopping } = engine;
  const running = new Set<Promise<void>>();
  const slots = Array.from({ length: options.retryConcurrency }, (_, slot) => slot);
  const slotFree = new Wakeup();
  const repeatedMax = Math.max(1, options.retryConcurrency - 1);
  let repeated = 0;
  while (await circuit.whenClosed(stopping)) {
    const limit = options.retryConcurrency - running.size;
    if (limit === 0) {
      await sleep(ports.clock, options.claimMs, slotFree, stopping);
      continue;
    }
    if (circuit.holdersFirstMs > 0) {
      await sleep(ports.clock, circuit.holdersFirstMs, stopping);
      continue;
    }
    const isAlone = running.size === 0;
    const claimed = await claimDue(engine, { limit, repeatedLimit: repeatedMax - repeated, isAlone });
    for (const { claim, behind } of await runsOf(engine, claimed)) {
      counters.inHand('claimsInHand', 1);
      const isRepeated = claim.attempts > 1;
      if (isRepeated) repeated += 1;
      const slot = slots.pop() ?? 0;
      const run = runClaim(engine, { claim, behind }, slot).finally(() => {
        counters.inHand('claimsInHand', -1);
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
    }
    if (claimed.some(({ isUnanswered }) => isUnanswered === true)) await Promise.allSettled(running);
    if (claimed.length === 0) await due.wait(engine, options.retryPollMs);
  }
  await Promise.all(running);
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

async function runClaim<Session>(engine: Engine<Session>, run: Run, slot: number): Promise<void> {
  const result = engine.stopping.rungForGood ? 'abandoned' : await settleClaim(engine, run, slot);
  if (result === 'abandoned') await giveBack(engine, run.claim);
}

function settleClaim<Session>(engine: Engine<Session>, run: Run, slot: number): Promise<OneResult> {
  const { attemptsMax } = engine.options;
  if (run.claim.attempts <= attemptsMax) return settleRun(engine, run, slot);
  const work = workOfClaim(run.claim, { handlers: engine.handlers, read: engine.options.read });
  // Each claim was counted before its handler ran, and no failure was recorded for the last: its process did not live to.
  const message = `Its ${attemptsMax} attempts are spent, and the last one ended without an answer: the process may have died in the handler.`;
  const failure = parkedFailureOf(new Error(message));
  return park(engine, work, {
    state: 'dead',
    attempts: attemptsMax,
    retryInMs: null,
    failure: { ...failure, stack: null },
  });
}

/** A claim that did not run is not counted. If this fails, the claim runs out by itself. */
async function giveBack<Session>(engine: Engine<Session>, claim: ParkedEvent): Promise<void> {
  try {
    await engine.ports.parked.giveBack([claim]);
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
