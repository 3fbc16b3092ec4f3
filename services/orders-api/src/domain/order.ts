/**
 * The order aggregate: decisions and state without I/O.
 *
 *   (none) ──create──▶ CREATED ──pay──▶ PAID ──complete──▶ COMPLETED
 *                         │              │
 *                         └────cancel────┴──────────────▶ CANCELLED
 *
 * COMPLETED and CANCELLED are final. Each accepted command is exactly one event, so an order's `version` is also the
 * aggregateVersion of its last event. Money that comes in where the order does not call for it changes no status: it is a
 * SurplusPaymentReceived, and owed back.
 */
export type OrderStatus = 'CREATED' | 'PAID' | 'COMPLETED' | 'CANCELLED';

export interface OrderLine {
  readonly productId: string;
  readonly quantity: number;
  /** Price of one piece in minor units of the order's currency (cents). */
  readonly unitPriceMinor: number;
}

export interface Order {
  readonly orderId: string;
  /** 1 after creation, raised by every event. */
  readonly version: number;
  readonly status: OrderStatus;
  readonly customerId: string;
  /** ISO 4217. */
  readonly currency: string;
  readonly lines: readonly OrderLine[];
  readonly totalMinor: number;
  readonly payment: { readonly transactionId: string; readonly amountMinor: number } | null;
  readonly cancellation: { readonly reason: string } | null;
}

export type OrderCommand =
  | {
      readonly kind: 'create';
      readonly orderId: string;
      readonly customerId: string;
      readonly currency: string;
      readonly lines: readonly OrderLine[];
    }
  /** Somebody wants to pay. `amountMinor` null: the whole total. Refused where the order does not call for it. */
  | { readonly kind: 'pay'; readonly transactionId: string; readonly amountMinor: number | null }
  /** The payment provider has the money already, so this is never refused: what the order does not call for is owed back. */
  | {
      readonly kind: 'receive-payment';
      readonly transactionId: string;
      readonly amountMinor: number;
      readonly currency: string;
    }
  | { readonly kind: 'cancel'; readonly reason: string }
  | { readonly kind: 'complete' };

export type OrderEvent =
  | {
      readonly eventType: 'OrderCreated';
      readonly orderId: string;
      readonly payload: {
        readonly customerId: string;
        readonly currency: string;
        readonly lines: readonly OrderLine[];
        readonly totalMinor: number;
      };
    }
  | {
      readonly eventType: 'OrderPaid';
      readonly payload: { readonly transactionId: string; readonly amountMinor: number; readonly currency: string };
    }
  | {
      readonly eventType: 'SurplusPaymentReceived';
      readonly payload: {
        readonly transactionId: string;
        readonly amountMinor: number;
        readonly currency: string;
        readonly cause: SurplusCause;
      };
    }
  | { readonly eventType: 'OrderCancelled'; readonly payload: { readonly reason: string; readonly wasPaid: boolean } }
  | { readonly eventType: 'OrderCompleted'; readonly payload: Readonly<Record<string, never>> };

/** Why a payment was more than the order called for. */
export type SurplusCause = 'cancelled' | 'paid-already' | 'amount-mismatch';

export type Rejection =
  | { readonly reason: 'order-unknown' }
  | { readonly reason: 'order-exists' }
  | { readonly reason: 'transition'; readonly command: OrderCommand['kind']; readonly status: OrderStatus }
  | { readonly reason: 'amount-mismatch'; readonly expectedMinor: number; readonly givenMinor: number }
  | { readonly reason: 'paid-otherwise'; readonly transactionId: string }
  /** The payment provider's number stands for another payment already. */
  | { readonly reason: 'payment-known'; readonly transactionId: string };

export type Decision =
  | { readonly kind: 'events'; readonly events: readonly [OrderEvent] }
  /** The command was carried out already: a payment callback came again. */
  | { readonly kind: 'unchanged' }
  | { readonly kind: 'rejected'; readonly rejection: Rejection };

/** What a command does to an order in this state; null is an order that does not exist. */
export function decide(command: OrderCommand, state: Order | null): Decision {
  if (command.kind === 'create') return state === null ? created(command) : rejected({ reason: 'order-exists' });
  if (state === null) return rejected({ reason: 'order-unknown' });
  switch (command.kind) {
    case 'pay':
      return pay(command, state);
    case 'receive-payment':
      return receivePayment(command, state);
    case 'cancel':
      if (state.status !== 'CREATED' && state.status !== 'PAID') return illegal(command, state);
      return one({
        eventType: 'OrderCancelled',
        payload: { reason: command.reason, wasPaid: state.status === 'PAID' },
      });
    case 'complete':
      if (state.status !== 'PAID') return illegal(command, state);
      return one({ eventType: 'OrderCompleted', payload: {} });
  }
}

function created(command: Extract<OrderCommand, { kind: 'create' }>): Decision {
  const { orderId, customerId, currency, lines } = command;
  return one({
    eventType: 'OrderCreated',
    orderId,
    payload: { customerId, currency, lines, totalMinor: totalOf(lines) },
  });
}

function pay(command: Extract<OrderCommand, { kind: 'pay' }>, state: Order): Decision {
  if (state.payment !== null) {
    // Payment providers repeat their callbacks; the transaction number tells a repeat from a second payment.
    return state.payment.transactionId === command.transactionId
      ? { kind: 'unchanged' }
      : rejected({ reason: 'paid-otherwise', transactionId: state.payment.transactionId });
  }
  if (state.status !== 'CREATED') return illegal(command, state);
  const givenMinor = command.amountMinor ?? state.totalMinor;
  if (givenMinor !== state.totalMinor) {
    return rejected({ reason: 'amount-mismatch', expectedMinor: state.totalMinor, givenMinor });
  }
  return one({
    eventType: 'OrderPaid',
    payload: { transactionId: command.transactionId, amountMinor: givenMinor, currency: state.currency },
  });
}

function receivePayment(command: Extract<OrderCommand, { kind: 'receive-payment' }>, state: Order): Decision {
  const { transactionId, amountMinor, currency } = command;
  if (state.payment?.transactionId === transactionId) return { kind: 'unchanged' };
  const payload = { transactionId, amountMinor, currency };
  const cause = surplusCause(command, state);
  return cause === null
    ? one({ eventType: 'OrderPaid', payload })
    : one({ eventType: 'SurplusPaymentReceived', payload: { ...payload, cause } });
}

function surplusCause(
  { amountMinor, currency }: { amountMinor: number; currency: string },
  state: Order,
): SurplusCause | null {
  if (state.payment !== null) return 'paid-already';
  if (state.status === 'CANCELLED') return 'cancelled';
  return amountMinor === state.totalMinor && currency === state.currency ? null : 'amount-mismatch';
}

/** The order after an event. Only events that {@link decide} gave for this very state may be passed. */
export function evolve(state: Order | null, event: OrderEvent): Order {
  if (event.eventType === 'OrderCreated') {
    return {
      ...event.payload,
      orderId: event.orderId,
      version: 1,
      status: 'CREATED',
      payment: null,
      cancellation: null,
    };
  }
  if (state === null) throw new Error(`${event.eventType} cannot be the first event of an order`);
  const version = state.version + 1;
  switch (event.eventType) {
    case 'OrderPaid': {
      const { transactionId, amountMinor } = event.payload;
      return { ...state, version, status: 'PAID', payment: { transactionId, amountMinor } };
    }
    case 'SurplusPaymentReceived':
      return { ...state, version };
    case 'OrderCancelled':
      return { ...state, version, status: 'CANCELLED', cancellation: { reason: event.payload.reason } };
    case 'OrderCompleted':
      return { ...state, version, status: 'COMPLETED' };
  }
}

/** The sum of an order in minor units; exact as long as it is a safe integer, which the edge checks. */
export function totalOf(lines: readonly OrderLine[]): number {
  return lines.reduce((sum, line) => sum + line.quantity * line.unitPriceMinor, 0);
}

function one(event: OrderEvent): Decision {
  return { kind: 'events', events: [event] };
}

function rejected(rejection: Rejection): Decision {
  return { kind: 'rejected', rejection };
}

function illegal(command: OrderCommand, state: Order): Decision {
  return rejected({ reason: 'transition', command: command.kind, status: state.status });
}
