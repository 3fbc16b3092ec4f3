const REASON_LENGTH_MAX = 1_000;

/** Why an order is cancelled whose stock is short. A long list is cut, and never in the middle of a character, which no event could carry. */
export function shortageReason(shortages: readonly { readonly productId: string }[]): string {
  const products = shortages.map(({ productId }) => productId).join(', ');
  return `out of stock: ${products}`.slice(0, REASON_LENGTH_MAX).replace(/\p{Surrogate}$/u, '');
}
