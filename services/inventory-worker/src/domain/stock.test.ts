import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { decideReservation, perProduct, stepOf } from './stock.js';

const stock = new Map([
  ['apple', 5],
  ['pear', 1],
]);

describe('a reservation', () => {
  it.each([
    [
      'takes exactly what is there',
      [
        { productId: 'apple', quantity: 5 },
        { productId: 'pear', quantity: 1 },
      ],
      'reserve',
    ],
    [
      'adds lines of one product up',
      [
        { productId: 'apple', quantity: 3 },
        { productId: 'apple', quantity: 3 },
      ],
      'reject',
    ],
    ['knows nothing of a product that is not listed', [{ productId: 'plum', quantity: 1 }], 'reject'],
    [
      'rejects all when one line is short',
      [
        { productId: 'apple', quantity: 1 },
        { productId: 'pear', quantity: 2 },
      ],
      'reject',
    ],
  ])('%s', (_name, lines, kind) => {
    expect(decideReservation('none', lines, stock).kind).toBe(kind);
  });

  it('names every shortage with what was asked for and what is there', () => {
    const lines = [
      { productId: 'plum', quantity: 1 },
      { productId: 'pear', quantity: 2 },
      { productId: 'apple', quantity: 1 },
    ];
    expect(decideReservation('none', lines, stock)).toEqual({
      kind: 'reject',
      shortages: [
        { productId: 'plum', requested: 1, available: 0 },
        { productId: 'pear', requested: 2, available: 1 },
      ],
    });
  });

  it('keeps the quantity of every product, in one line each', () => {
    const line = fc.record({ productId: fc.constantFrom('a', 'b', 'c'), quantity: fc.integer({ min: 1, max: 9 }) });
    fc.assert(
      fc.property(fc.array(line), (lines) => {
        const total = (of: readonly { productId: string; quantity: number }[], id: string) =>
          of.filter(({ productId }) => productId === id).reduce((sum, { quantity }) => sum + quantity, 0);
        const combined = perProduct(lines);
        expect(new Set(combined.map(({ productId }) => productId)).size).toBe(combined.length);
        for (const id of ['a', 'b', 'c']) expect(total(combined, id)).toBe(total(lines, id));
      }),
    );
  });
});

describe('the state of a reservation', () => {
  const STATES = ['none', 'reserved', 'rejected', 'released', 'committed', 'returned'];

  it('allows an order to be reserved once, whatever became of it', () => {
    const lines = [{ productId: 'apple', quantity: 1 }];
    const kinds = STATES.map((state) => decideReservation(state, lines, stock).kind);
    expect(kinds).toEqual(['reserve', 'nothing', 'nothing', 'nothing', 'nothing', 'nothing']);
  });

  it('allows each step from one state only, whatever comes twice or out of turn', () => {
    const steps = (['paid', 'cancelled'] as const).flatMap((cause) =>
      STATES.map((state) => ({ cause, state, step: stepOf(cause, state) })),
    );
    const allowed = steps.flatMap(({ cause, state, step }) =>
      step.kind === 'move' ? [`${state} is ${cause}: ${step.from} to ${step.to}, then ${step.state}`] : [],
    );
    expect(allowed).toEqual([
      'reserved is paid: reserved to shipped, then committed',
      'reserved is cancelled: reserved to available, then released',
      'committed is cancelled: shipped to available, then returned',
    ]);
  });
});
