import { checkGroup } from './check-group.js';
import { checkLandings } from './check-landings.js';
import type { History, Violation } from './history.js';
import { Ledger, checkCommitted, checkUnpublished } from './ledger.js';

/**
 * Compares what happened with what was promised: committed events are dense, reach the broker in order, take effect once
 * and in order in every group, as they were written; and at rest each is settled or visibly waits for an operator.
 */
export function checkHistory(history: History): readonly Violation[] {
  const ledger = new Ledger(history.committed);
  return [
    ...checkCommitted(history.committed),
    ...(history.landings === undefined ? [] : checkLandings(history.landings, history, ledger)),
    ...(history.atRest ? checkUnpublished(history.unpublished, ledger) : []),
    ...history.groups.flatMap((group) => checkGroup(group, history, ledger)),
  ];
}
