import { hasControlCharacter, shown } from '@nightporter/contracts';
import { NightporterError } from '@nightporter/protocol';

/** Who decides, and why. */
export interface Decision {
  readonly by: string;
  readonly reason: string;
}

const BY_MAX = 200;
const REASON_MAX = 2_000;
export const LIMIT_MAX = 1_000;

/** @throws NP_ACTION_INVALID for a decision that nobody could be asked about later. */
export function assertDecision({ by, reason }: Decision): void {
  assertText('by', by, BY_MAX);
  assertText('reason', reason, REASON_MAX);
}

/** @throws NP_ACTION_INVALID */
export function assertLimit(limit: number): void {
  if (Number.isSafeInteger(limit) && limit >= 1 && limit <= LIMIT_MAX) return;
  throw invalid(`limit is ${limit}; accepted: a whole number from 1 to ${LIMIT_MAX}.`);
}

export function invalid(message: string): NightporterError {
  return new NightporterError('NP_ACTION_INVALID', message);
}

function assertText(name: string, value: string, charactersMax: number): void {
  const fits = value.trim() !== '' && value.length <= charactersMax && !hasControlCharacter(value);
  if (!fits) {
    throw invalid(
      `${name} is ${shown(value)}; accepted: 1 to ${charactersMax} characters, not blank, no control characters.`,
    );
  }
}
