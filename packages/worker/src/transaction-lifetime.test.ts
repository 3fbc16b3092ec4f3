import { expect, it } from 'vitest';
import { shortLifetime } from './transaction-lifetime.js';

it('warns where the server may end a transaction before handler and commit have had their time, and says what mends it', () => {
  expect(shortLifetime(35_000)).toEqual({
    handlerMs: 30_000,
    transactionMs: 5_000,
    transactionLifetimeLimitMs: 35_000,
    mend: 'db.adminCommand({ setParameter: 1, transactionLifetimeLimitSeconds: 36 }) on every member, or a shorter tuning.handlerMs',
  });
  expect(shortLifetime(15_000, { handlerMs: 10_000 })).toMatchObject({ handlerMs: 10_000, transactionMs: 5_000 });
});

it.each([
  ['the default of the server', 60_000, {}],
  ['a limit that was shortened together with the handlers', 15_000, { handlerMs: 5_000 }],
  ['a server that does not say', null, {}],
])('says nothing of %s', (_, limitMs, tuning) => {
  expect(shortLifetime(limitMs, tuning)).toBeNull();
});
