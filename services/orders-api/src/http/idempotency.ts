import { canonicalJson, type JsonValue } from '@nightporter/contracts';
import { createHash } from 'node:crypto';
import type { CommandRequest } from '../orders.js';

export interface HashedRequest {
  /** Route and ids: `POST /orders/o-1/pay`. */
  readonly target: string;
  readonly ifMatch: string | undefined;
  readonly content: JsonValue;
}

/** Two requests are the same when they ask for the same thing, whatever the order of their fields. */
export function idempotencyOf(key: string | undefined, request: HashedRequest): CommandRequest['idempotency'] {
  if (key === undefined) return null;
  const text = canonicalJson([request.target, request.ifMatch ?? null, request.content]);
  return { key, requestHash: createHash('sha256').update(text).digest('hex') };
}
