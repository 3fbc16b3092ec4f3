import { NightporterError } from '@nightporter/protocol';
import { createHash, timingSafeEqual } from 'node:crypto';
import { BlockList, isIP } from 'node:net';

/** What a request may touch: `ledger` reads a producer's ledger and keeps a group's entry there, `ops` everything. */
export type Scope = 'ledger' | 'ops';

export interface Tokens {
  readonly ops: string | null;
  readonly ledger: string | null;
}

export type Access = 'allowed' | 'forbidden' | 'unknown';

/** A token that is guessed would be guessed by machines. */
const TOKEN_LENGTH_MIN = 16;

const loopback = new BlockList();
loopback.addSubnet('127.0.0.0', 8, 'ipv4');
loopback.addAddress('::1', 'ipv6');

/** Whether only processes of this machine can reach an address, or a name. */
export function isLoopback(host: string): boolean {
  const family = isIP(host);
  if (family === 0) return host.toLowerCase() === 'localhost';
  return loopback.check(host, family === 4 ? 'ipv4' : 'ipv6');
}

/** Rejects a configuration that would let strangers operate, with NP_CONFIG_INVALID. */
export function assertGuarded(host: string, { ledger, ops }: Tokens): void {
  for (const [name, token] of [
    ['OPS_TOKEN', ops],
    ['LEDGER_TOKEN', ledger],
  ] as const) {
    if (token === null || (token.length >= TOKEN_LENGTH_MIN && /^[\x21-\x7e]+$/.test(token))) continue;
    throw invalid(
      `${name} has ${token.length} characters; accepted: ${TOKEN_LENGTH_MIN} or more visible ASCII characters.`,
    );
  }
  if (ops === null && ledger !== null)
    throw invalid('LEDGER_TOKEN is set without OPS_TOKEN; accepted: both, or OPS_TOKEN alone.');
  if (ops !== null && ops === ledger) throw invalid('LEDGER_TOKEN is the same as OPS_TOKEN; accepted: another one.');
  if (ops === null && !isLoopback(host)) {
    throw invalid(
      `HOST is ${JSON.stringify(host)} and OPS_TOKEN is not set; accepted: a token, or a loopback address such as 127.0.0.1.`,
    );
  }
}

/** What a request with this `Authorization` header may do where `scope` is needed. Without tokens everything is allowed. */
export function accessOf(
  authorization: string | undefined,
  { scope, tokens }: { scope: Scope; tokens: Tokens },
): Access {
  if (tokens.ops === null) return 'allowed';
  const given = /^Bearer +([\x21-\x7e]+) *$/i.exec(authorization ?? '')?.[1] ?? '';
  // Both are compared whatever the first says, in a time that does not depend on the token.
  const isOps = isSame(given, tokens.ops);
  const isLedger = tokens.ledger !== null && isSame(given, tokens.ledger);
  if (isOps) return 'allowed';
  if (!isLedger) return 'unknown';
  return scope === 'ledger' ? 'allowed' : 'forbidden';
}

function isSame(given: string, expected: string): boolean {
  return timingSafeEqual(hashOf(given), hashOf(expected));
}

function hashOf(token: string): Buffer {
  return createHash('sha256').update(token, 'utf8').digest();
}

function invalid(message: string): NightporterError {
  return new NightporterError('NP_CONFIG_INVALID', message);
}
