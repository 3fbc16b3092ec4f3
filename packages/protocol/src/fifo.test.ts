import fc from 'fast-check';
import { expect, test } from 'vitest';
import { Fifo } from './fifo.js';

test('a queue gives back what it was given, in order, however pushes and shifts alternate', () => {
  fc.assert(
    fc.property(fc.array(fc.boolean(), { maxLength: 300, size: 'max' }), (pushes) => {
      const queue = new Fifo<number>();
      const model: number[] = [];
      pushes.forEach((isPush, index) => {
        if (isPush) {
          queue.push(index);
          model.push(index);
        } else {
          expect(queue.shift()).toBe(model.shift());
        }
        expect([queue.size, queue.peek(), queue.last()]).toEqual([model.length, model[0], model.at(-1)]);
      });
    }),
  );
});
