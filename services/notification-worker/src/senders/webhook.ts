import type { Notification, SendOutcome, Sender } from '../delivery/ports.js';

export interface WebhookOptions {
  readonly url: string;
  /** Sent as a bearer token. */
  readonly token: string | null;
}

const RECEIPT_CHARACTERS_MAX = 200;

/**
 * Posts each notification as JSON to one address, with its key in `Idempotency-Key`: whoever receives it does it once per key. Any 2xx
 * means that it was taken.
 */
export function createWebhookSender({ url, token }: WebhookOptions): Sender {
  return {
    send: async (notification, signal) => {
      const response = await fetch(url, {
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          'idempotency-key': notification._id,
          ...(token === null ? {} : { authorization: `Bearer ${token}` }),
        },
        body: JSON.stringify(bodyOf(notification)),
        // What a redirect leads to may not know the key, and would see the token.
        redirect: 'manual',
        signal,
      });
      await response.body?.cancel();
      return webhookOutcome(response.status, response.headers);
    },
    close: () => Promise.resolve(),
  };
}

function bodyOf({ _id, recipient, orderId, eventId, eventType, occurredAt, subject, text }: Notification): unknown {
  return { id: _id, recipient, orderId, eventId, eventType, occurredAt, subject, text };
}

/**
 * What an answer means. Permanent is only what a receiver says of this notification; what it says of the address, of who asks or of the
 * moment (401, 403, 404, 429, 5xx …) would be the same for every other one, and can be mended.
 */
export function webhookOutcome(status: number, headers: Pick<Headers, 'get'>): SendOutcome {
  if (status >= 200 && status < 300)
    return { kind: 'sent', receipt: headers.get('x-request-id')?.slice(0, RECEIPT_CHARACTERS_MAX) ?? null };
  const reason = `the receiver answered ${status}`;
  if (PERMANENT.has(status)) return { kind: 'permanent', reason };
  const seconds = headers.get('retry-after') ?? '';
  return { kind: 'transient', reason, ...(/^\d{1,6}$/.test(seconds) ? { afterMs: Number(seconds) * 1_000 } : {}) };
}

const PERMANENT: ReadonlySet<number> = new Set([400, 410, 413, 414, 415, 422, 431]);
