import { inTrace } from '@nightporter/contracts';
import { changesOf, sequence, sleep } from '@nightporter/protocol';
import { backoffMs } from './circuit.js';
import type { SilentCount } from './counters.js';
import type { Decide, Decision } from './decision.js';
import type { Engine } from './engine.js';
import { classify, type FailureClass } from './failure.js';
import {
  attemptOf,
  groupChangesOf,
  setAsideUnreadable,
  toldOf,
  toldOfSetAside,
  withPositionsOnce,
} from './group-changes.js';
import { GroupView, messageOf } from './group-view.js';
import { forgottenOf } from './forgotten.js';
import { runHandler, type HandlerRun } from './handler-run.js';
import type { EventWork, Work } from './incoming.js';
import { LeftToLedger } from './left-to-ledger.js';
import type { ConsumerEvent } from './consumer-events.js';
import type { ConsumerOptions } from './options.js';
import { versionKey, type GroupChange, type GroupState, type GroupTransaction } from './ports.js';
import type { TransactionTrace } from './trace-ports.js';
import type { TurnEnding } from './turns.js';

export type SettleResult =
  /** The first `count` messages have a durable outcome. */
  | { readonly kind: 'committed'; readonly count: number }
  /** The claim is no longer ours: somebody else decides. */
  | { readonly kind: 'lost' }
  /** Nothing was written; `at` is the index of the message whose handler failed, where it was one. */
  | { readonly kind: 'failed'; readonly at: number | null; readonly error: unknown }
  /** Nothing was written after so many conflicts or database failures in a row. */
  | { readonly kind: 'hard'; readonly error: unknown }
  /** The consumer is stopping. */
  | { readonly kind: 'abandoned' };

const NOTHING_LOADED: GroupState = {
  positions: new Map(),
  inboxByEvent: new Map(),
  inboxByVersion: new Map(),
  parked: new Map(),
  nowMs: 0,
};

/** Into so many parts goes what a claim has left beside its handler; each of its waits for a turn takes one at most. */
const CLAIM_WAITS = 4;

/** What a transaction has decided so far. */
interface Draft<Session> {
  readonly changes: GroupChange[];
  readonly told: ConsumerEvent[];
  readonly silent: SilentCount[];
  /** True once the documents were read: the database answers. */
  isLoaded: boolean;
  /** Index of the message whose handler runs. */
  running: number | null;
  readonly leftToLedger: LeftToLedger<Session>;
  readonly trace: TransactionTrace | null;
}

/**
 * Settles messages in their order, in one transaction. Each try decides anew from a fresh load. A conflict, and a database
 * that does not answer, repeat it: neither is the messages' fault, so neither counts as an attempt. An outage is waited out for
 * as long as it takes; after `hardshipsMax` other failures in a row (conflicts, and failures after a load that succeeded) it gives up,
 * since the messages may after all have to do with it; where it is late,
 * after the first.
 */
export async function settle<Session>(
  engine: Engine<Session>,
  works: readonly Work[],
  { decide, hardshipsMax, isLate = () => false }: { decide: Decide; hardshipsMax: number; isLate?: () => boolean },
): Promise<SettleResult> {
  const { circuit, options, ports, rollBack, stopping, turns } = engine;
  let patienceMs = patienceOf(options, works);
  for (let hardships = 0; ;) {
    await circuit.whenClosed(stopping);
    const askedAtMs = ports.clock.now();
    await turns.begin({ longestMs: patienceMs, hurry: rollBack });
    patienceMs = Math.max(0, patienceMs - (ports.clock.now() - askedAtMs));
    const tried = await turns.during(
      async () => (rollBack.rungForGood ? null : tryOnce(engine, works, decide)),
      endingOf,
    );
    if (tried === null) return { kind: 'abandoned' };
    if (tried.kind === 'done') {
      circuit.succeeded();
      if (tried.result.kind === 'committed') publish(engine, tried.draft);
      return tried.result;
    }
    const { draft, error, failure } = tried;
    switch (failure) {
      case 'rolled-back':
        return { kind: 'abandoned' };
      case 'broken':
        // A handler's broken invariant is its own; one outside of handlers is ours, and nobody's to handle.
        if (draft.running === null) throw error;
        return { kind: 'failed', at: draft.running, error };
      case 'failed':
        return { kind: 'failed', at: draft.running, error };
      case 'unavailable':
        engine.tell({ kind: 'database-unavailable', operation: 'transact', error });
        circuit.failed();
        if (stopping.rungForGood) return { kind: 'abandoned' };
        if (draft.isLoaded) hardships += 1;
        break;
      case 'conflict':
        engine.tell({ kind: 'conflict' });
        hardships += 1;
        break;
    }
    if (hardships >= hardshipsMax || (hardships > 0 && isLate())) return { kind: 'hard', error };
    if (failure === 'conflict') {
      await sleep(ports.clock, backoffMs(conflictLimits(options), hardships, ports.random), rollBack);
    }
  }
}

/**
 * How long turns are waited for, in all tries together. What the broker has handed out is kept hidden meanwhile. A claim runs out, and costs an
 * attempt then: it has its turn up to three times (with others, alone, to be parked), and they leave it more than its handler may take.
 */
function patienceOf({ claimMs, handlerMs, transactionMs }: ConsumerOptions, works: readonly Work[]): number {
  const isClaimed = works.some((work) => work.kind === 'event' && work.claim !== null);
  return isClaimed ? Math.min(transactionMs, (claimMs - handlerMs) / CLAIM_WAITS) : handlerMs;
}

/** What one transaction came to. */
type Tried<Session> =
  | {
      readonly kind: 'done';
      readonly draft: Draft<Session>;
      readonly result: Extract<SettleResult, { kind: 'committed' | 'lost' }>;
    }
  | {
      readonly kind: 'threw';
      readonly draft: Draft<Session>;
      readonly error: unknown;
      readonly failure: FailureClass;
    };

async function tryOnce<Session>(
  engine: Engine<Session>,
  works: readonly Work[],
  decide: Decide,
): Promise<Tried<Session>> {
  const { ports } = engine;
  const trace = ports.tracer?.transaction(works.length) ?? null;
  const draft: Draft<Session> = {
    changes: [],
    told: [],
    silent: [],
    isLoaded: false,
    running: null,
    leftToLedger: new LeftToLedger(engine, works),
    trace,
  };
  try {
    const result = await ports.store.transact((transaction) =>
      inTransaction(engine, transaction, { works, decide, draft }),
    );
    trace?.ended({ kind: 'committed' });
    return { kind: 'done', draft, result };
  } catch (error) {
    trace?.ended({ kind: 'failed', error });
    return { kind: 'threw', draft, error, failure: classify(error) };
  }
}

function endingOf<Session>(tried: Tried<Session> | null): TurnEnding {
  if (tried?.kind === 'done') return 'committed';
  return tried?.failure === 'conflict' ? 'conflicted' : 'otherwise';
}

function conflictLimits({ conflictFirstMs, conflictMaxMs }: { conflictFirstMs: number; conflictMaxMs: number }): {
  firstMs: number;
  maxMs: number;
} {
  return { firstMs: conflictFirstMs, maxMs: conflictMaxMs };
}

async function inTransaction<Session>(
  engine: Engine<Session>,
  transaction: GroupTransaction<Session>,
  { works, decide, draft }: { works: readonly Work[]; decide: Decide; draft: Draft<Session> },
): Promise<Extract<SettleResult, { kind: 'committed' | 'lost' }>> {
  const { clock } = engine.ports;
  const events = works.flatMap((work) => (work.kind === 'event' ? [work.event] : []));
  const state = events.length === 0 ? NOTHING_LOADED : await transaction.load(events);
  draft.isLoaded = true;
  if (!works.every((work) => isStillClaimed(work, state))) return { kind: 'lost' };
  const view = new GroupView(state, await forgottenOf(engine, events, state));
  const startedAt = clock.now();
  let count = 0;
  for (const work of works) {
    if (count > 0 && clock.now() - startedAt >= engine.options.transactionMs) break;
    if (work.kind === 'unreadable') {
      const setAside = setAsideUnreadable(work);
      draft.changes.push(setAside);
      draft.told.push(toldOfSetAside(setAside));
    } else {
      draft.running = count;
      await decideEvent(engine, transaction, { work, view, decide, draft });
      draft.running = null;
    }
    count += 1;
  }
  if (draft.changes.length > 0) await transaction.save(withPositionsOnce(draft.changes));
  return { kind: 'committed', count };
}

/** A claim holds while its row is as it was claimed; another claimer, or an operator, may have taken it over. */
function isStillClaimed(work: Work, state: GroupState): boolean {
  if (work.kind === 'unreadable' || work.claim === null) return true;
  const { aggregate, envelope } = work.event;
  const row = state.parked.get(versionKey(aggregate, envelope.aggregateVersion));
  return row?.revision === work.claim.revision;
}

async function decideEvent<Session>(
  engine: Engine<Session>,
  transaction: GroupTransaction<Session>,
  { work, view, decide, draft }: { work: EventWork; view: GroupView; decide: Decide; draft: Draft<Session> },
): Promise<void> {
  const message = messageOf(work);
  const around = view.around(message);
  const decision: Decision = decide(work, sequence(around, message));
  // The ledger repeats nothing: what it found missing has been settled meanwhile.
  if (work.isFromLedger && decision.outcome.kind === 'duplicate') return;
  if (decision.outcome.kind === 'gap' && (await draft.leftToLedger.has(work))) {
    draft.silent.push('leftToLedger');
    return;
  }
  if (decision.outcome.kind === 'apply') await runHandlerOf(engine, transaction, { work, trace: draft.trace });
  const changes = changesOf(around, message, decision.outcome);
  const writes = groupChangesOf(work, changes, { occupant: view.occupant(work.event), parking: decision.parking });
  view.apply(work.event, changes);
  draft.changes.push(...writes);
  draft.told.push(...toldOf(work, writes, decision.outcome));
  if (decision.outcome.kind === 'before-start') draft.silent.push('beforeStart');
  if (decision.outcome.kind === 'advance') draft.silent.push('advanced');
}

async function runHandlerOf<Session>(
  engine: Engine<Session>,
  { session }: GroupTransaction<Session>,
  { work, trace }: { readonly work: EventWork; readonly trace: TransactionTrace | null },
): Promise<void> {
  const { handlers, options, ports, rollBack } = engine;
  const { event } = work;
  const { envelope } = event;
  const handler = handlers[envelope.eventType];
  // The sequencer says `apply` only for content that was read for a handler.
  if (handler === undefined || work.readable === null) throw new Error(`${envelope.eventType} has no handler.`);
  const attempt = attemptOf(work);
  const handling = trace?.handling({ event, attempt }) ?? null;
  const cause = handling === null ? envelope : inTrace(envelope, handling.context);
  const run: HandlerRun<Session> = {
    handler,
    // A copy for each run: what a handler changes in it must not reach its next run, nor the row in which its event is parked.
    event: structuredClone(work.readable),
    session,
    emit: ports.emitter(session, cause),
    attempt,
    limitMs: options.handlerMs,
    clock: ports.clock,
    rollBack,
  };
  await (handling === null ? runHandler(run) : handling.run(() => runHandler(run)));
}

/** Tells of what is now durable, and rings where a parked event has become due. */
function publish<Session>(engine: Engine<Session>, draft: Draft<Session>): void {
  for (const what of draft.silent) engine.counters.count(what);
  for (const event of draft.told) engine.tell(event);
  const settled = draft.told.flatMap((told) => (told.kind === 'settled' ? [told.event.envelope.eventId] : []));
  engine.filter.remember(engine, settled);
  const makesDue = draft.changes.some(
    (change) => change.kind === 'make-due' || (change.kind === 'park' && change.retryInMs === 0),
  );
  if (makesDue) engine.due.ring();
}
