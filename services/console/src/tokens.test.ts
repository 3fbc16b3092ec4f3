import { describe, expect, it } from 'vitest';
import { accessOf, assertGuarded, isLoopback } from './tokens.js';

const OPS = 'ops-token-0123456789';
const LEDGER = 'ledger-token-0123456789';
const both = { ops: OPS, ledger: LEDGER };

describe('access', () => {
  it.each([
    ['everything with the operators’ token', OPS, 'ops', 'allowed'],
    ['ledgers with the operators’ token', OPS, 'ledger', 'allowed'],
    ['ledgers with their token', LEDGER, 'ledger', 'allowed'],
    ['nothing else with the ledgers’ token', LEDGER, 'ops', 'forbidden'],
    ['nothing with another', `${OPS}x`, 'ops', 'unknown'],
    ['nothing with an empty one', '', 'ledger', 'unknown'],
  ] as const)('is given to %s', (_name, token, scope, access) => {
    expect(accessOf(`Bearer ${token}`, { scope, tokens: both })).toBe(access);
  });

  it.each([undefined, '', OPS, `Basic ${OPS}`, `Bearer${OPS}`, `Bearer ${OPS} ${OPS}`])(
    'is not given to the header %s',
    (authorization) => {
      expect(accessOf(authorization, { scope: 'ledger', tokens: both })).toBe('unknown');
    },
  );

  it('never comes from a token that is not set', () => {
    expect(accessOf('Bearer null', { scope: 'ledger', tokens: { ops: OPS, ledger: null } })).toBe('unknown');
  });
});

describe('a configuration', () => {
  it.each([
    ['no token where others can come', '0.0.0.0', { ops: null, ledger: null }],
    ['no token under a name that may lead anywhere', 'console.example', { ops: null, ledger: null }],
    ['a short token', '127.0.0.1', { ops: 'short', ledger: null }],
    ['a token with a blank', '127.0.0.1', { ops: 'a token with blanks in it', ledger: null }],
    ['a ledger’s token alone', '127.0.0.1', { ops: null, ledger: LEDGER }],
    ['one token for both', '127.0.0.1', { ops: OPS, ledger: OPS }],
  ])('is refused with %s', (_name, host, tokens) => {
    expect(() => {
      assertGuarded(host, tokens);
    }).toThrow(/accepted:/);
  });

  it.each([
    ['127.0.0.1', { ops: null, ledger: null }],
    ['::1', { ops: null, ledger: null }],
    ['0.0.0.0', both],
  ])('is accepted at %s', (host, tokens) => {
    expect(() => {
      assertGuarded(host, tokens);
    }).not.toThrow();
  });

  it('never shows a token', () => {
    expect(() => {
      assertGuarded('127.0.0.1', { ops: 'short', ledger: null });
    }).not.toThrow(/short\b/);
  });
});

it.each([
  ['127.0.0.1', true],
  ['127.9.9.9', true],
  ['::1', true],
  ['localhost', true],
  ['LOCALHOST', true],
  ['0.0.0.0', false],
  ['::', false],
  ['localhost.example', false],
  ['192.168.0.1', false],
  ['', false],
])('%s is loopback: %s', (host, expected) => {
  expect(isLoopback(host)).toBe(expected);
});
