/** The share of a lease that its holder does not use: clocks run at different speeds, and a send takes time to leave. */
const MARGIN_DIVISOR = 10;

/**
 * Until when the holder may act on its lease, by its own monotonic clock. The database counts from a later moment than the
 * request was sent at, so counting from the request errs on the safe side, however long the answer took.
 */
export function leaseDeadline(lease: { requestedAtMs: number; leaseMs: number }): number {
  return lease.requestedAtMs + lease.leaseMs - Math.ceil(lease.leaseMs / MARGIN_DIVISOR);
}

/** How often a held lease is renewed: two renewals may fail before it ends. */
export function renewEveryMs(leaseMs: number): number {
  return Math.max(1, Math.floor(leaseMs / 3));
}
