import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface Delivery {
  readonly key: string;
  /** Behind the `?` of the address, by which a test tells senders apart. */
  readonly query: string;
  readonly headers: IncomingMessage['headers'];
  readonly body: Readonly<Record<string, unknown>>;
}

/** A receiver of notifications, as somebody else would run it: it counts what comes under each key. */
export interface WebhookReceiver {
  readonly url: string;
  readonly deliveries: readonly Delivery[];
  /** Deliveries by key. */
  counts(): ReadonlyMap<string, number>;
  close(): Promise<void>;
}

/** What to answer: a status and headers, or nothing at all, for ever. It may take its time. */
export type Answer = (
  delivery: Delivery,
  number: number,
) => number | { status: number; headers: Record<string, string> } | null | Promise<number | null>;

/** Each delivery is counted before `answer` is asked, as by a receiver that has taken it and then says so. */
export async function receiveWebhooks(answer: Answer = () => 200): Promise<WebhookReceiver> {
  const deliveries: Delivery[] = [];
  const server = createServer((request, response) => {
    void read(request).then(async (body) => {
      const [, query = ''] = (request.url ?? '').split('?');
      const delivery = { key: String(request.headers['idempotency-key']), query, headers: request.headers, body };
      deliveries.push(delivery);
      const given = await answer(delivery, deliveries.length);
      if (given === null) return;
      const { status, headers } = typeof given === 'number' ? { status: given, headers: {} } : given;
      response.writeHead(status, headers).end();
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/notifications`,
    deliveries,
    counts: () => {
      const counts = new Map<string, number>();
      for (const { key } of deliveries) counts.set(key, (counts.get(key) ?? 0) + 1);
      return counts;
    },
    close: async () => {
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    },
  };
}

async function read(request: IncomingMessage): Promise<Record<string, unknown>> {
  let text = '';
  for await (const chunk of request.setEncoding('utf8')) text += chunk as string;
  return JSON.parse(text) as Record<string, unknown>;
}
