import fc from 'fast-check';
import { expect, test } from 'vitest';
import { chooseDue, isTried, type DueRow } from './due-choice.js';

const fresh: DueRow = { attempts: 0 };
const tried: DueRow = { attempts: 1 };
const suspect: DueRow = { attempts: 0, isSuspect: true };
const unanswered: DueRow = { attempts: 1, isRunning: true };
const request = { limit: 4, repeatedLimit: 3, togetherMax: 2, isAlone: true };

test.each<[string, readonly DueRow[], Partial<typeof request>, readonly DueRow[]]>([
  ['so many as may share a transaction', [fresh, fresh, fresh], { limit: 1 }, [fresh, fresh]],
  ['and no more, however many transactions there are', [fresh, fresh, fresh], { limit: 4 }, [fresh, fresh]],
  ['one for each transaction where none share', [fresh, fresh, fresh], { limit: 2, togetherMax: 1 }, [fresh, fresh]],
  ['each that was tried takes one', [tried, fresh, fresh, fresh], { limit: 2 }, [tried, fresh, fresh]],
  ['so does each that is suspect', [suspect, tried, fresh], { limit: 2 }, [suspect, tried]],
  ['others come in the stead of too many that were tried', [tried, tried, fresh], { repeatedLimit: 1 }, [tried, fresh]],
  ['an unanswered one comes by itself', [fresh, unanswered, unanswered], {}, [unanswered]],
  ['and keeps everything from whoever has others in hand', [fresh, unanswered], { isAlone: false }, []],
])('%s', (_, due, limits, chosen) => {
  expect(chooseDue(due, { ...request, ...limits })).toEqual(chosen);
});

test('never more than the limits, and never less than they allow', () => {
  const row = fc.record({ attempts: fc.nat(1), isSuspect: fc.boolean() });
  const limits = fc.record({
    limit: fc.integer({ min: 1, max: 4 }),
    repeatedLimit: fc.nat(4),
    togetherMax: fc.integer({ min: 1, max: 4 }),
  });
  fc.assert(
    fc.property(fc.array(row, { maxLength: 12 }), limits, (due, own) => {
      const chosen = chooseDue(due, { ...own, isAlone: true });
      const alone = chosen.filter(isTried).length;
      const transactions = (together: number, single: number): number =>
        single + (own.togetherMax === 1 ? together : Math.min(1, together));
      const fitsTogether = (together: number): boolean => own.togetherMax === 1 || together <= own.togetherMax;
      expect(alone).toBeLessThanOrEqual(own.repeatedLimit);
      expect(transactions(chosen.length - alone, alone)).toBeLessThanOrEqual(own.limit);
      expect(fitsTogether(chosen.length - alone)).toBe(true);
      for (const left of due.filter((one) => !chosen.includes(one))) {
        const single = alone + (isTried(left) ? 1 : 0);
        const together = chosen.length + 1 - single;
        const fits = transactions(together, single) <= own.limit && fitsTogether(together);
        expect(fits && single <= own.repeatedLimit).toBe(false);
      }
    }),
  );
});
