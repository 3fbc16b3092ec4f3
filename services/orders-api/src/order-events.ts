/** An event of an order, where it stands on its way, and what each group made of it. */
export interface OrderEventView {
  readonly version: number;
  /** Null where the event was committed and retention has deleted it, or moved it to where it cannot be read from here: `notKnown` says so then. */
  readonly event: {
    readonly eventId: string;
    readonly eventType: string;
    readonly occurredAt: string;
    readonly topic: string;
    readonly status: 'PENDING' | 'PROCESSING' | 'PUBLISHED' | 'FAILED' | 'DEAD';
    readonly publishedAt: string | null;
  } | null;
  /** Group → an outcome, `parked: <state>`, `before-start`, `past` (its record has expired) or `missing` (not heard of yet). */
  readonly groups: Readonly<Record<string, string>>;
}

export interface OrderEventsPage {
  readonly events: readonly OrderEventView[];
  /** The version behind which the next page begins; null at the end. */
  readonly next: number | null;
  /** What could not be found out, in whole sentences. */
  readonly notKnown: readonly string[];
}

/**
 * The events of an order, from the ledger. Null where there are none, so that there is no such order. The groups are those that are
 * registered for the events' topics, as far as their databases can be read from here. Rejects with NP_STORE_UNAVAILABLE.
 */
export interface OrderEvents {
  read(
    orderId: string,
    page: { readonly afterVersion: number; readonly limit: number },
  ): Promise<OrderEventsPage | null>;
}
