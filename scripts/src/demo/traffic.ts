import type { Order } from '@nightporter/orders-api';
import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { planOf, type OrderPlan, type Step } from './plan.js';

/** A command that the API said it had carried out: the promise that everything else is measured by. */
export interface Acknowledged {
  readonly orderId: string;
  readonly eventType: string;
  /** The order's version in the answer, and so the aggregateVersion of the event. */
  readonly version: number;
}

export interface TrafficResult {
  readonly acknowledged: readonly Acknowledged[];
  /** The last answer for each order. */
  readonly orders: ReadonlyMap<string, Order>;
  readonly refused: number;
  /** Repeats with the same idempotency key that got the same answer. */
  readonly replayed: number;
  /** Answers that should not have been: each is a failure of the demo. */
  readonly unexpected: readonly string[];
}

export interface TrafficOptions {
  readonly apiUrl: string;
  readonly orders: number;
  readonly clients: number;
  /** Orders that begin in a second; null: each client begins with the next one at once. */
  readonly perSecond: number | null;
  readonly signal: AbortSignal;
  /** Told after each order. */
  readonly onOrder: (done: number) => void;
}

const EVENT_OF = { create: 'OrderCreated', pay: 'OrderPaid', cancel: 'OrderCancelled', complete: 'OrderCompleted' };
const ATTEMPTS_MAX = 20;
const RETRY_MS = 250;

/** Carries all plans out, several clients at once or so many orders a second, and writes down what the API promised. */
export async function runTraffic(options: TrafficOptions): Promise<TrafficResult> {
  const log = new TrafficLog();
  const startedAtMs = performance.now();
  let next = 0;
  let done = 0;
  const client = async (): Promise<void> => {
    while (next < options.orders) {
      const plan = planOf(next++);
      if (options.perSecond !== null) await untilDue(startedAtMs + (plan.index / options.perSecond) * 1_000, options);
      await placeOrder(plan, { ...options, log });
      options.onOrder(++done);
    }
  };
  await Promise.all(Array.from({ length: options.clients }, client));
  return log;
}

/** Orders come at their moment, whether or not those before are done, as long as there is a client for them. */
async function untilDue(dueAtMs: number, { signal }: Pick<TrafficOptions, 'signal'>): Promise<void> {
  const waitMs = dueAtMs - performance.now();
  if (waitMs > 0) await delay(waitMs, undefined, { signal });
}

class TrafficLog implements TrafficResult {
  readonly acknowledged: Acknowledged[] = [];
  readonly orders = new Map<string, Order>();
  readonly unexpected: string[] = [];
  refused = 0;
  replayed = 0;
}

type Context = Pick<TrafficOptions, 'apiUrl' | 'signal'> & { readonly log: TrafficLog };

async function placeOrder(plan: OrderPlan, context: Context): Promise<void> {
  // Chosen by the client, so that a repeat after a lost answer is about the same order.
  const orderId = `order ${plan.index}/${randomUUID()}`;
  for (const step of plan.steps) {
    const request = requestOf(step, { plan, orderId });
    const answer = await send(request, context);
    note(step, { orderId, answer, log: context.log });
    if (!plan.repeats) continue;
    const again = await send(request, context);
    if (again.status === answer.status && again.text === answer.text) context.log.replayed += 1;
    else
      context.log.unexpected.push(
        `the repeat of ${step.command} on ${orderId} was answered ${again.status} ${again.text}`,
      );
  }
}

interface CommandRequest {
  readonly path: string;
  readonly key: string;
  readonly body: unknown;
}

function requestOf(step: Step, { plan, orderId }: { plan: OrderPlan; orderId: string }): CommandRequest {
  const key = randomUUID();
  const path = `/orders/${encodeURIComponent(orderId)}/${step.command}`;
  switch (step.command) {
    case 'create':
      return {
        path: '/orders',
        key,
        body: { orderId, customerId: `customer ${plan.index % 50}`, currency: 'EUR', lines: plan.lines },
      };
    case 'pay':
      return { path, key, body: { transactionId: `transaction ${key}` } };
    case 'cancel':
      return { path, key, body: { reason: 'the customer changed their mind' } };
    case 'complete':
      return { path, key, body: {} };
  }
}

interface Answer {
  readonly status: number;
  readonly text: string;
}

/** A request without an answer, or answered 503, is sent again with its key: the API must not carry it out twice. */
async function send({ path, key, body }: CommandRequest, { apiUrl, signal }: Context): Promise<Answer> {
  let last = 'no answer';
  for (let attempt = 1; attempt <= ATTEMPTS_MAX; attempt += 1) {
    signal.throwIfAborted();
    try {
      const response = await fetch(`${apiUrl}${path}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'idempotency-key': key },
        body: JSON.stringify(body),
        signal: AbortSignal.any([signal, AbortSignal.timeout(30_000)]),
      });
      const text = await response.text();
      if (response.status !== 503) return { status: response.status, text };
      last = text;
    } catch (error) {
      if (signal.aborted) throw error;
      last = String(error);
    }
    await delay(RETRY_MS, undefined, { signal });
  }
  throw new Error(`POST ${path} was not answered in ${ATTEMPTS_MAX} attempts; the last one: ${last}`);
}

function note(step: Step, { orderId, answer, log }: { orderId: string; answer: Answer; log: TrafficLog }): void {
  const done = step.command === 'create' ? 201 : 200;
  const expected = { accepted: [done], refused: [409], either: [done, 409] }[step.expected];
  if (!expected.includes(answer.status)) {
    const wanted = expected.join(' or ');
    log.unexpected.push(`${step.command} on ${orderId} was answered ${answer.status} ${answer.text}, not ${wanted}`);
  }
  if (answer.status === 200 || answer.status === 201) {
    const order = JSON.parse(answer.text) as Order;
    log.acknowledged.push({ orderId, eventType: EVENT_OF[step.command], version: order.version });
    log.orders.set(orderId, order);
  } else {
    log.refused += 1;
  }
}
