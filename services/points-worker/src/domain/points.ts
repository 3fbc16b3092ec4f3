/** Points of a customer, decided without I/O. */

/** One point for every full unit of the currency. */
const MINOR_UNITS_PER_POINT = 100;

/** Points that an order brought, and whether they were taken back. */
export interface Award {
  readonly orderId: string;
  readonly customerId: string;
  readonly points: number;
  /** `open`: the order is placed and not paid. */
  readonly state: 'open' | 'awarded' | 'reversed';
}

export type AwardStep =
  /** By how much the customer's balance changes. */
  | { readonly kind: 'change'; readonly points: number; readonly state: 'awarded' | 'reversed' }
  | { readonly kind: 'nothing' };

export function pointsFor(amountMinor: number): number {
  return Math.floor(amountMinor / MINOR_UNITS_PER_POINT);
}

/** An order brings its points once, and only what it brought is taken back. */
export function award(before: Award, amountMinor: number): AwardStep {
  if (before.state !== 'open') return { kind: 'nothing' };
  return { kind: 'change', points: pointsFor(amountMinor), state: 'awarded' };
}

export function reverse(before: Award): AwardStep {
  if (before.state !== 'awarded') return { kind: 'nothing' };
  return { kind: 'change', points: -before.points, state: 'reversed' };
}
