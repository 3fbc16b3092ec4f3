export interface Finding {
  /** `error`: events stand still, or could be lost. `warning`: they will, or somebody has to act. `note`: good to know. */
  readonly severity: 'error' | 'warning' | 'note';
  readonly check: Check;
  readonly text: string;
  /** The command, or the deed, that mends it; null where nothing has to be mended. */
  readonly mend: string | null;
}

type Check =
  | 'engine'
  | 'replica-set'
  | 'indexes'
  | 'clock'
  | 'history'
  | 'transaction-lifetime'
  | 'checkpoint'
  | 'relay'
  | 'outbox'
  | 'group'
  | 'inbox-retention'
  | 'topic';

export function error(check: Check, text: string, mend: string): Finding {
  return { severity: 'error', check, text, mend };
}

export function warning(check: Check, text: string, mend: string): Finding {
  return { severity: 'warning', check, text, mend };
}

export function note(check: Check, text: string): Finding {
  return { severity: 'note', check, text, mend: null };
}
