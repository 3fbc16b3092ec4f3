import { decideRetry, retryDelayMs, sleep } from '@nightporter/protocol';
import { backoffMs } from './circuit.js';
import { byFailure, byVerdict, type FailedParking } from './decision.js';
import type { Engine } from './engine.js';
import { parkedFailureOf } from './failure.js';
import { attemptOf } from './group-changes.js';
import type { EventWork, Work } from './incoming.js';
import { settle } from './settle.js';

/** `durable`: the message has an outcome in the database. `lost`: the claim went to another. `abandoned`: the consumer stops. */
export type OneResult = 'durable' | 'lost' | 'abandoned';

/**
 * Brings one message to a durable outcome, however long the database takes: settled, or parked with its failure. What cannot
 * commit for reasons that are not its own is parked too in the end, without counting an attempt, if only that commits: a
 * message must not hold its queue for ever.
 */
export async function settleOne<Session>(engine: Engine<Session>, work: Work): Promise<OneResult> {
  const { hardshipsMax } = engine.options;
  for (let failures = 1; ; failures += 1) {
    const result = await settle(engine, [work], { decide: byVerdict, hardshipsMax });
    switch (result.kind) {
      case 'committed':
        return 'durable';
      case 'lost':
      case 'abandoned':
        return result.kind;
      case 'failed':
        if (work.kind === 'event') return parkFailed(engine, work, result.error);
        if (!(await waitAfter(engine, result.error, failures))) return 'abandoned';
        break;
      case 'hard': {
        const parked = work.kind === 'event' ? await tryParkUncounted(engine, work, result.error) : null;
        if (parked !== null) return parked;
        break;
      }
    }
  }
}

/** Parks an event whose attempt failed: for a retry, or as a dead letter when its attempts are spent; uncounted where the failure passes by itself. */
export async function parkFailed<Session>(
  engine: Engine<Session>,
  work: EventWork,
  error: unknown,
): Promise<OneResult> {
  if (isTransient(engine, error)) return park(engine, work, uncounted(engine, work, error));
  engine.counters.count('handlerFailures');
  const attempts = attemptOf(work);
  const decision = decideRetry(engine.retryPolicy, attempts, engine.ports.random);
  return park(engine, work, {
    state: decision.kind,
    attempts,
    retryInMs: decision.kind === 'retry' ? decision.delayMs : null,
    failure: parkedFailureOf(error),
  });
}

/** A judge that fails has not said that the failure is nobody's: it is charged like any other, and the worker goes on. */
function isTransient<Session>({ options }: Engine<Session>, error: unknown): boolean {
  try {
    return options.isTransient(error);
  } catch {
    return false;
  }
}

function uncounted<Session>(engine: Engine<Session>, work: EventWork, error: unknown): FailedParking {
  return {
    state: 'retry',
    attempts: Math.max(0, (work.claim?.attempts ?? 0) - 1),
    retryInMs: retryDelayMs(engine.retryPolicy.delays, 1, engine.ports.random),
    failure: parkedFailureOf(error),
    // Nobody else shall meet what it meets.
    isSuspect: true,
  };
}

/** Parks a failed event, however long that takes. */
export async function park<Session>(
  engine: Engine<Session>,
  work: EventWork,
  parking: FailedParking,
): Promise<OneResult> {
  const decide = byFailure(parking);
  for (let failures = 1; ; failures += 1) {
    const result = await settle(engine, [work], { decide, hardshipsMax: engine.options.hardshipsMax });
    switch (result.kind) {
      case 'committed':
        return 'durable';
      case 'lost':
      case 'abandoned':
        return result.kind;
      case 'failed':
        if (!(await waitAfter(engine, result.error, failures))) return 'abandoned';
        break;
      case 'hard':
        break;
    }
  }
}

async function tryParkUncounted<Session>(
  engine: Engine<Session>,
  work: EventWork,
  error: unknown,
): Promise<OneResult | null> {
  const decide = byFailure(uncounted(engine, work, error));
  const result = await settle(engine, [work], { decide, hardshipsMax: 1 });
  switch (result.kind) {
    case 'committed':
      return 'durable';
    case 'lost':
    case 'abandoned':
      return result.kind;
    case 'failed':
    case 'hard':
      return null;
  }
}

/** The database refuses what must be written, for a reason that it does not share with other calls; false when the consumer stops. */
async function waitAfter<Session>(engine: Engine<Session>, error: unknown, failures: number): Promise<boolean> {
  const { options, ports, stopping } = engine;
  engine.tell({ kind: 'database-unavailable', operation: 'park', error });
  const limits = { firstMs: options.pauseFirstMs, maxMs: options.pauseMaxMs };
  await sleep(ports.clock, backoffMs(limits, failures, ports.random), stopping);
  return !stopping.rungForGood;
}
