import type { Handlers } from '@nightporter/consumer';
import type { ClientSession, Collection } from 'mongodb';
import { numberOf, type BenchmarkContext } from './benchmark.js';
import { MEASURED_EVENT } from './messages.js';

/** Without what is measured, and with it. */
export type Mode = 'off' | 'on';

/** What a phase of either mode has in common. */
export interface MeasuredPhase {
  readonly mode: Mode;
  readonly ms: number;
  readonly transactions: number;
}

/** One phase of each mode in turn, for as many rounds as were asked for. */
export async function inTurn<Phase>(
  context: BenchmarkContext,
  measure: (phase: { mode: Mode; name: string }) => Promise<Phase>,
): Promise<readonly Phase[]> {
  const phases: Phase[] = [];
  for (let round = 1; round <= numberOf(context, 'rounds'); round += 1) {
    for (const mode of ['off', 'on'] as const) phases.push(await measure({ mode, name: `${mode}-${round}` }));
  }
  return phases;
}

/** The rates of one mode, and the sums of its phases; `countOf` tells how many events a phase had. */
export function ofMode<Phase extends MeasuredPhase>(
  phases: readonly Phase[],
  mode: Mode,
  countOf: (phase: Phase) => number,
): {
  readonly perSecond: number;
  readonly perTransaction: number;
  readonly sum: (of: (phase: Phase) => number) => number;
} {
  const own = phases.filter((phase) => phase.mode === mode);
  const sum = (of: (phase: Phase) => number): number => own.reduce((total, phase) => total + of(phase), 0);
  const events = sum(countOf);
  return {
    perSecond: Math.round((events * 1_000) / sum(({ ms }) => ms)),
    perTransaction: rounded(events / sum(({ transactions }) => transactions)),
    sum,
  };
}

/** What each event costs: one insert in the transaction that settles it. */
export function insertingHandlers(effects: Collection): Handlers<ClientSession> {
  return {
    [MEASURED_EVENT]: async ({ event: { aggregateId, aggregateVersion: version, data }, session }) => {
      await effects.insertOne({ aggregateId, version, data }, { session });
    },
  };
}

/** For a consumer whose handlers emit nothing. */
export const emitsNothing = () => (): Promise<never> => Promise.reject(new Error('The benchmark emits nothing.'));

export function rounded(value: number): number {
  return Math.round(value * 100) / 100;
}
