import { setTimeout as delay } from 'node:timers/promises';

/** Orders over HTTP, one after another on each of a few clients, until it is stopped. */
export interface OrdersLoad {
  /** Ends once every request has its answer. */
  stop(): Promise<OrdersAnswers>;
}

export interface OrdersAnswers {
  /** Each order is placed and paid: two events. */
  readonly orders: number;
  /** What was answered, by status. */
  readonly statuses: ReadonlyMap<number, number>;
  readonly msMax: number;
}

const CLIENTS = 4;
const LINES = [{ productId: 'apple', quantity: 1, unitPriceMinor: 10 }];

export function startOrdersLoad(apiUrl: string, { ordersPerSecond }: { ordersPerSecond: number }): OrdersLoad {
  const statuses = new Map<number, number>();
  const state = { isStopped: false, orders: 0, msMax: 0 };
  const send = async (path: string, body: unknown): Promise<Record<string, unknown>> => {
    const sentMs = performance.now();
    const { status, answer } = await postJson(`${apiUrl}${path}`, body);
    state.msMax = Math.max(state.msMax, performance.now() - sentMs);
    statuses.set(status, (statuses.get(status) ?? 0) + 1);
    return answer;
  };
  const client = async (): Promise<void> => {
    while (!state.isStopped) {
      const { orderId } = await send('/orders', { customerId: 'c', currency: 'EUR', lines: LINES });
      await send(`/orders/${String(orderId)}/pay`, { transactionId: `payment of ${String(orderId)}` });
      state.orders += 1;
      await delay((CLIENTS * 1_000) / ordersPerSecond);
    }
  };
  const clients = Promise.all(Array.from({ length: CLIENTS }, client));
  return {
    stop: async () => {
      state.isStopped = true;
      await clients;
      return { orders: state.orders, statuses, msMax: state.msMax };
    },
  };
}

export async function postJson(
  url: string,
  body: unknown,
): Promise<{ readonly status: number; readonly answer: Record<string, unknown> }> {
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
    signal: AbortSignal.timeout(30_000),
  });
  return { status: response.status, answer: (await response.json()) as Record<string, unknown> };
}
