/** What an order does to the stock, decided without I/O. */

/** Type aliases rather than interfaces, since only those count as plain JSON. */
export type StockLine = {
  readonly productId: string;
  readonly quantity: number;
};

export type Shortage = {
  readonly productId: string;
  readonly requested: number;
  readonly available: number;
};

export type ReservationDecision =
  | { readonly kind: 'reserve'; readonly lines: readonly StockLine[] }
  /** All or nothing: one short line rejects the whole order. */
  | { readonly kind: 'reject'; readonly shortages: readonly Shortage[] }
  | { readonly kind: 'nothing' };

/**
 * Whether a new order can be reserved from what is available; a product that is not listed has nothing available. Only an order of which nothing
 * was decided is new: whoever runs its first event again, with an inbox that does not know it, must not take its pieces a second time.
 */
export function decideReservation(
  state: string,
  lines: readonly StockLine[],
  available: ReadonlyMap<string, number>,
): ReservationDecision {
  if (state !== 'none') return { kind: 'nothing' };
  const wanted = perProduct(lines);
  const shortages = wanted.flatMap(({ productId, quantity }) => {
    const stock = available.get(productId) ?? 0;
    return stock >= quantity ? [] : [{ productId, requested: quantity, available: stock }];
  });
  return shortages.length === 0 ? { kind: 'reserve', lines: wanted } : { kind: 'reject', shortages };
}

/** One line per product, in the order of first mention: two lines of one product must not be checked one by one. */
export function perProduct(lines: readonly StockLine[]): readonly StockLine[] {
  const quantities = new Map<string, number>();
  for (const { productId, quantity } of lines) quantities.set(productId, (quantities.get(productId) ?? 0) + quantity);
  return [...quantities].map(([productId, quantity]) => ({ productId, quantity }));
}

/** Where pieces are: on the shelf and free, on the shelf and held for an order, or gone to a customer. */
export type StockPlace = 'available' | 'reserved' | 'shipped';

/** What the order's next event does with what is held for it. */
export type ReservationStep =
  | {
      readonly kind: 'move';
      readonly from: StockPlace;
      readonly to: StockPlace;
      readonly state: 'committed' | 'released' | 'returned';
    }
  | { readonly kind: 'nothing' };

/** The state machine of a reservation: an order that is paid or cancelled twice, or out of turn, moves nothing. */
export function stepOf(cause: 'paid' | 'cancelled', state: string): ReservationStep {
  if (cause === 'paid' && state === 'reserved')
    return { kind: 'move', from: 'reserved', to: 'shipped', state: 'committed' };
  if (cause === 'cancelled' && state === 'reserved')
    return { kind: 'move', from: 'reserved', to: 'available', state: 'released' };
  if (cause === 'cancelled' && state === 'committed')
    return { kind: 'move', from: 'shipped', to: 'available', state: 'returned' };
  return { kind: 'nothing' };
}
