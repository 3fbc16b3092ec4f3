/** From the commit of an event until a query has it, for 99 of 100 events. */
export const GOAL_P99_MS = 10_000;

/** `missed` also where nothing was measured. */
export function verdictOn(p99Ms: number): 'reached' | 'missed' {
  return p99Ms <= GOAL_P99_MS ? 'reached' : 'missed';
}
