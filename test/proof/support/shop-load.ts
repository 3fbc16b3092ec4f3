import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type { Seeded } from './seeded.js';

/** A payment that the shop said it had taken. */
export interface TakenPayment {
  readonly transactionId: string;
  readonly orderId: string;
  readonly amountMinor: number;
}

/** What the shop has promised its customers and their payment provider. */
export interface Promised {
  readonly orderIds: readonly string[];
  readonly payments: readonly TakenPayment[];
  /** Answers by command and status. */
  readonly answers: ReadonlyMap<string, number>;
}

export interface ShopLoad {
  readonly apiUrl: string;
  readonly chance: Seeded;
  readonly orders: number;
  readonly clients: number;
  /** Begins every id, so that one load's are not another's. */
  readonly name: string;
  readonly products: readonly [string, ...string[]];
}

const CUSTOMERS = 8;
const CURRENCIES = ['EUR', 'USD'] as const;
const COMMANDS = [
  'callback',
  'callback',
  'repeat',
  'other-payment',
  'wrong-amount',
  'pay',
  'cancel',
  'cancel',
] as const;
const COMMANDS_MAX = 4;
/** How often a command does not wait for the one before it. */
const CROSSING = 0.4;
const ANSWER_MS = 120_000;
const RETRY_MS = 100;

type Command = (typeof COMMANDS)[number];

/** Answers that each command may get: a customer who is too late is told so, a payment provider never. */
const EXPECTED: Readonly<Record<Command | 'create', readonly number[]>> = {
  create: [201],
  callback: [200],
  repeat: [200],
  'other-payment': [200],
  'wrong-amount': [200],
  pay: [200, 409],
  cancel: [200, 409],
};

/** Clients that place orders, and do with each whatever comes to their mind, some of it at once. Rejects at an answer that should not be. */
export async function runShopLoad(load: ShopLoad): Promise<Promised> {
  const orderIds: string[] = [];
  const payments = new Map<string, TakenPayment>();
  const answers = new Map<string, number>();
  const note: Note = ({ command, status, payment }) => {
    answers.set(`${command} ${status}`, (answers.get(`${command} ${status}`) ?? 0) + 1);
    if (status === 200 && payment !== null) payments.set(payment.transactionId, payment);
  };
  let next = 0;
  const client = async (): Promise<void> => {
    while (next < load.orders) {
      const orderId = `${load.name}/order ${next}`;
      next += 1;
      orderIds.push(orderId);
      await customer({ ...load, chance: chances[orderIds.length - 1] ?? load.chance }, orderId, note);
    }
  };
  // Drawn beforehand: which order is whose is decided by the clients' speed, what is done with it is not.
  const chances = Array.from({ length: load.orders }, () => load.chance.fork());
  await Promise.all(Array.from({ length: load.clients }, client));
  return { orderIds, payments: [...payments.values()], answers };
}

type Note = (answer: { command: Command | 'create'; status: number; payment: TakenPayment | null }) => void;

async function customer({ apiUrl, chance, products }: ShopLoad, orderId: string, note: Note): Promise<void> {
  const customer = chance.integer(CUSTOMERS);
  const currency = CURRENCIES[customer % CURRENCIES.length] ?? 'EUR';
  const lines = Array.from({ length: 1 + chance.integer(2) }, () => ({
    productId: chance.pick(products),
    quantity: 1 + chance.integer(3),
    unitPriceMinor: 50 + chance.integer(950),
  }));
  const totalMinor = lines.reduce((sum, line) => sum + line.quantity * line.unitPriceMinor, 0);
  const create = { orderId, customerId: `customer ${customer}`, currency, lines };
  note({ command: 'create', status: await send('create', { url: `${apiUrl}/orders`, body: create }), payment: null });
  const carryOut = async (command: Command, index: number): Promise<void> => {
    const { amountMinor, path, transactionId } = requestOf(command, { orderId, totalMinor, index });
    const body =
      command === 'cancel'
        ? { reason: 'changed my mind' }
        : command === 'pay'
          ? { transactionId }
          : { orderId, paymentTransactionNo: transactionId, amountMinor, currency };
    const status = await send(command, { url: `${apiUrl}${path}`, body });
    note({ command, status, payment: command === 'cancel' ? null : { transactionId, orderId, amountMinor } });
  };
  const commands = Array.from({ length: chance.integer(COMMANDS_MAX + 1) }, () => chance.pick(COMMANDS));
  let atOnce: Promise<void>[] = [];
  for (const [index, command] of commands.entries()) {
    if (chance.next() >= CROSSING) {
      await Promise.all(atOnce);
      atOnce = [];
    }
    atOnce.push(carryOut(command, index));
  }
  await Promise.all(atOnce);
}

function requestOf(
  command: Command,
  { index, orderId, totalMinor }: { index: number; orderId: string; totalMinor: number },
): { path: string; transactionId: string; amountMinor: number } {
  const callback = '/payments/callback';
  const order = `/orders/${encodeURIComponent(orderId)}`;
  switch (command) {
    // The provider says the same again, under the same number.
    case 'callback':
    case 'repeat':
      return { path: callback, transactionId: `${orderId} paid`, amountMinor: totalMinor };
    case 'other-payment':
      return { path: callback, transactionId: `${orderId} paid otherwise ${index}`, amountMinor: totalMinor };
    case 'wrong-amount':
      return { path: callback, transactionId: `${orderId} paid wrongly ${index}`, amountMinor: totalMinor + 1 };
    case 'pay':
      return { path: `${order}/pay`, transactionId: `${orderId} paid by hand ${index}`, amountMinor: totalMinor };
    case 'cancel':
      return { path: `${order}/cancel`, transactionId: '', amountMinor: 0 };
  }
}

/** Sent again until it is answered: whoever has no answer does not know, and asks the same under the same key. */
async function send(command: Command | 'create', { body, url }: { body: unknown; url: string }): Promise<number> {
  const key = randomUUID();
  const end = performance.now() + ANSWER_MS;
  let last: unknown = 'no answer';
  while (performance.now() < end) {
    try {
      const response = await fetch(url, {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'idempotency-key': key },
        body: JSON.stringify(body),
        signal: AbortSignal.timeout(30_000),
      });
      const text = await response.text();
      last = `${response.status} ${text}`;
      if (EXPECTED[command].includes(response.status)) return response.status;
      if (response.status !== 503) break;
    } catch (error) {
      last = error;
    }
    await delay(RETRY_MS);
  }
  throw new Error(`${command} at ${url} was answered ${String(last)}`);
}
