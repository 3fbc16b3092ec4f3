import { assertPayload } from '@nightporter/contracts';
import { describe, expect, it } from 'vitest';
import { shortageReason } from './reason.js';

describe('the reason of a cancellation', () => {
  it('names the products that are short', () => {
    expect(shortageReason([{ productId: 'apple' }, { productId: 'pear' }])).toBe('out of stock: apple, pear');
  });

  it.each([199, 200])('can be carried by an event, however many characters of two halves are cut (%i)', (length) => {
    const productId = `${'x'.repeat(length % 2)}${'🍏'.repeat(99)}`;
    const reason = shortageReason(Array.from({ length: 100 }, () => ({ productId })));
    expect(reason.length).toBeLessThanOrEqual(1_000);
    expect(reason.length).toBeGreaterThanOrEqual(999);
    expect(() => {
      assertPayload({ reason });
    }).not.toThrow();
  });
});
