import type { OrderLine } from '@nightporter/orders-api';

export type Step =
  | { readonly command: 'create' | 'pay' | 'cancel' | 'complete'; readonly expected: 'accepted' }
  /** Asked for although the order's state forbids it. */
  | { readonly command: 'pay' | 'cancel' | 'complete'; readonly expected: 'refused' }
  /** The workers are at the order too: whoever comes first decides. */
  | { readonly command: 'pay' | 'cancel'; readonly expected: 'either' };

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

const step = {
  create: { command: 'create', expected: 'accepted' },
  pay: { command: 'pay', expected: 'accepted' },
  cancel: { command: 'cancel', expected: 'accepted' },
  /** Paid orders are delivered and completed by the workers, and what is completed cannot be cancelled. */
  tryToCancel: { command: 'cancel', expected: 'either' },
  refusedPay: { command: 'pay', expected: 'refused' },
  refusedComplete: { command: 'complete', expected: 'refused' },
} as const satisfies Record<string, Step>;

/** Ten kinds of orders, over and over. The workers complete what is paid, and cancel what cannot be had. */
const STORIES: readonly (readonly Step[])[] = [
  [step.create, step.pay],
  [step.create, step.pay],
  [step.create, step.cancel],
  [step.create, step.pay],
  [step.create, step.pay, step.tryToCancel],
  [step.create],
  [step.create, step.refusedComplete, step.pay],
  [step.create, step.pay],
  [step.create, step.cancel, step.refusedPay],
  [step.create, step.pay, step.tryToCancel],
];

/** Of the scarce product there may be none left: then the order is cancelled by the workers, before its steps or between them. */
function whenScarce(steps: readonly Step[]): readonly Step[] {
  return steps.map((one) => {
    if (one.command !== 'pay' && one.command !== 'cancel') return one;
    return one.expected === 'refused' ? one : { command: one.command, expected: 'either' };
  });
}

/** What is done with the n-th order: the same at every run, so that a run can be told from the plan. */
export function planOf(index: number): OrderPlan {
  const line = (offset: number): OrderLine => ({
    productId: `product-${(index * 7 + offset * 11) % PRODUCTS}`,
    quantity: 1 + ((index + offset) % 5),
    unitPriceMinor: 100 + ((index * 13) % 900),
  });
  const rare: OrderLine = { ...RARE, quantity: 1 + (index % 2), unitPriceMinor: 9_900 };
  const steps = STORIES[index % STORIES.length] ?? [];
  const isScarce = index % 17 === 0;
  return {
    index,
    lines: isScarce ? [line(0), rare] : [line(0), line(1)].slice(0, 1 + (index % 2)),
    steps: isScarce ? whenScarce(steps) : steps,
    repeats: index % 5 === 0,
  };
}
