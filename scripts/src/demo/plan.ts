import type { OrderLine } from '@nightporter/orders-api';

export type Step =
  | { readonly command: 'create' | 'pay' | 'cancel' | 'complete'; readonly expected: 'accepted' }
  /** Asked for although the order's state forbids it. */
  | { readonly command: 'pay' | 'cancel' | 'complete'; readonly expected: 'refused' };

export interface OrderPlan {
  readonly index: number;
  readonly lines: readonly OrderLine[];
  readonly steps: readonly Step[];
  /** Sends each command twice with the same idempotency key. */
  readonly repeats: boolean;
}

/** Many, so that orders seldom meet on one product: transactions that do conflict, and one of them starts again. */
const PRODUCTS = 400;
const PIECES_PER_PRODUCT = 100_000;
/** Nobody can have more than these three. */
const RARE = { productId: 'rare', quantity: 3 };

/** The stock at the start. */
export const STOCK: ReadonlyMap<string, number> = new Map([
  ...Array.from({ length: PRODUCTS }, (_, index): [string, number] => [`product-${index}`, PIECES_PER_PRODUCT]),
  [RARE.productId, RARE.quantity],
]);

const accepted = (...commands: readonly ('create' | 'pay' | 'cancel' | 'complete')[]): readonly Step[] =>
  commands.map((command) => ({ command, expected: 'accepted' }));
const refused = (command: 'pay' | 'cancel' | 'complete'): Step => ({ command, expected: 'refused' });

/** Ten kinds of orders, over and over. */
const STORIES: readonly (readonly Step[])[] = [
  accepted('create', 'pay', 'complete'),
  accepted('create', 'pay', 'complete'),
  accepted('create', 'cancel'),
  accepted('create', 'pay', 'complete'),
  accepted('create', 'pay', 'cancel'),
  accepted('create'),
  [...accepted('create'), refused('complete'), ...accepted('pay', 'complete'), refused('cancel')],
  accepted('create', 'pay'),
  [...accepted('create', 'cancel'), refused('pay')],
  accepted('create', 'pay', 'complete'),
];

/** What is done with the n-th order: the same at every run, so that a run can be told from the plan. */
export function planOf(index: number): OrderPlan {
  const line = (offset: number): OrderLine => ({
    productId: `product-${(index * 7 + offset * 11) % PRODUCTS}`,
    quantity: 1 + ((index + offset) % 5),
    unitPriceMinor: 100 + ((index * 13) % 900),
  });
  const rare: OrderLine = { ...RARE, quantity: 1 + (index % 2), unitPriceMinor: 9_900 };
  return {
    index,
    lines: index % 17 === 0 ? [line(0), rare] : [line(0), line(1)].slice(0, 1 + (index % 2)),
    steps: STORIES[index % STORIES.length] ?? [],
    repeats: index % 5 === 0,
  };
}
