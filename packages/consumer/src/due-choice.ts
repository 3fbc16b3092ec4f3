import type { ClaimRequest } from './ports.js';

/** What the choice must know of a message that is due. */
export interface DueRow {
  readonly attempts: number;
  readonly isRunning?: boolean;
  readonly isSuspect?: boolean;
}

/** Claimed before, or suspected of having ended a process: it runs with no other in its transaction. */
export function isTried({ attempts, isSuspect }: Pick<DueRow, 'attempts' | 'isSuspect'>): boolean {
  return attempts > 0 || isSuspect === true;
}

/** The same of a claim, which counts itself. */
export function wasTried(claim: DueRow): boolean {
  return isTried({ ...claim, attempts: claim.attempts - 1 });
}

/** Which of the rows that are due, in their order, a {@link ClaimRequest} is given: the rule of every parked queue. */
export function chooseDue<Row extends DueRow>(
  due: readonly Row[],
  { isAlone, limit, repeatedLimit, togetherMax }: Omit<ClaimRequest, 'claimMs'>,
): readonly Row[] {
  const unanswered = due.find(({ isRunning }) => isRunning === true);
  if (unanswered !== undefined) return isAlone ? [unanswered] : [];
  const chosen: Row[] = [];
  let tried = 0;
  for (const row of due) {
    const triedNow = tried + (isTried(row) ? 1 : 0);
    const together = chosen.length + 1 - triedNow;
    const places = togetherMax === 1 ? together : Math.min(1, together);
    if (triedNow > repeatedLimit || triedNow + places > limit || (togetherMax > 1 && together > togetherMax)) continue;
    tried = triedNow;
    chosen.push(row);
  }
  return chosen;
}
