/**
 * How large a proof is. `npm test` runs all of them small, so that each rule is tried in every run; `npm run test:relay`,
 * `npm run test:consumer`, `npm run test:services` and `npm run test:operate` run them in full.
 */
export const IS_FULL = process.env['NIGHTPORTER_PROOF'] === 'full';

export function sized<Value>({ full, small }: { full: Value; small: Value }): Value {
  return IS_FULL ? full : small;
}
