import { once } from 'node:events';
import { createServer, type AddressInfo, type Socket } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import type { Notification, Sender } from '../delivery/ports.js';
import { createSmtpSender } from './smtp.js';

/** What to say to a command; `CONN` is the greeting and `.` the end of a mail. Undefined: the usual. */
type Reply = (command: string) => string | undefined | Promise<string | undefined>;

const ending: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const end of ending.splice(0).reverse()) await end();
});

/** A mail server that is asked for each of its replies, and notes the recipients of the mails that it took. */
async function startServer(reply: Reply) {
  const taken: string[] = [];
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket)).on('error', () => socket.destroy());
    converse(socket, reply, taken);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  ending.push(async () => {
    for (const socket of sockets) socket.destroy();
    server.close();
    await once(server, 'close');
  });
  return { taken, url: `smtp://127.0.0.1:${(server.address() as AddressInfo).port}` };
}

function converse(socket: Socket, reply: Reply, taken: string[]): void {
  let recipient = '';
  let isContent = false;
  let rest = '';
  const answer = async (command: string): Promise<void> => {
    const line = (await reply(command)) ?? USUAL[command] ?? '250 ok';
    if (command.startsWith('RCPT TO')) recipient = /<(.*)>/.exec(command)?.[1] ?? '';
    if (command === '.' && line.startsWith('2')) taken.push(recipient);
    isContent = line.startsWith('354');
    if (!socket.destroyed) socket.write(`${line}\r\n`);
  };
  let answered = answer('CONN');
  socket.setEncoding('utf8').on('data', (chunk: string) => {
    const lines = (rest + chunk).split('\r\n');
    rest = lines.pop() ?? '';
    for (const line of lines) if (!isContent || line === '.') answered = answered.then(() => answer(line));
  });
}

const USUAL: Readonly<Record<string, string>> = { CONN: '220 here', DATA: '354 go on' };

function createSender(url: string): Sender {
  const sender = createSmtpSender({
    ...{ url, from: 'Shop <shop@shop.example>', domain: 'example.com', timeoutMs: 10_000, connectionsMax: 1 },
  });
  ending.push(() => sender.close());
  return sender;
}

function notification(recipient: string): Notification {
  return {
    ...{ _id: `key-of-${recipient}`, channel: 'smtp', recipient, orderId: 'order 1', eventId: 'event 1' },
    ...{ eventType: 'OrderPaid', occurredAt: '2026-01-02T03:04:05.006Z', subject: 'paid', text: 'a text' },
  };
}

const inTime = new AbortController().signal;

describe('what a mail server refuses', () => {
  it.each([
    ['the connection', 'CONN', '554 no service here', 'transient'],
    ['the sender', 'MAIL FROM', '550 not from you', 'transient'],
    ['the recipient', 'RCPT TO', '550 no such box', 'permanent'],
    ['the content', '.', '554 looks like spam', 'permanent'],
    ['the recipient for now', 'RCPT TO', '452 full', 'transient'],
  ] as const)('%s (%s: %s) is %s', async (_what, refused, line, kind) => {
    const { url } = await startServer((command) => (command.startsWith(refused) ? line : undefined));
    expect(await createSender(url).send(notification('ada'), inTime)).toEqual({
      kind,
      reason: expect.stringContaining(line) as string,
    });
  });
});

describe('a mail whose time is up', () => {
  /** A server that says nothing of the recipient `slow` before it is told to go on. */
  async function startSlowServer() {
    const asked = gate();
    const goneOn = gate();
    const server = await startServer(async (command) => {
      if (!command.startsWith('RCPT TO:<slow@')) return undefined;
      asked.open();
      await goneOn.opened;
      return undefined;
    });
    return { ...server, asked: asked.opened, goOn: goneOn.open };
  }

  it('does not go out later where it waits for a connection', async () => {
    const { url, taken, asked, goOn } = await startSlowServer();
    const sender = createSender(url);
    const slow = sender.send(notification('slow'), inTime);
    await asked;
    const time = new AbortController();
    const late = sender.send(notification('late'), time.signal);
    time.abort();
    goOn();
    expect((await slow).kind).toBe('sent');
    expect((await late).kind).toBe('transient');
    expect((await sender.send(notification('next'), inTime)).kind).toBe('sent');
    expect(taken).toEqual(['slow@example.com', 'next@example.com']);
  });

  it('does not go out later where the server is slow, and the next one has a connection', async () => {
    const { url, taken, asked, goOn } = await startSlowServer();
    const sender = createSender(url);
    const time = new AbortController();
    const slow = sender.send(notification('slow'), time.signal);
    await asked;
    time.abort();
    goOn();
    expect((await slow).kind).toBe('transient');
    expect((await sender.send(notification('next'), inTime)).kind).toBe('sent');
    expect(taken).toEqual(['next@example.com']);
  });
});

function gate(): { readonly opened: Promise<void>; readonly open: () => void } {
  let open = (): void => undefined;
  const opened = new Promise<void>((resolve) => (open = resolve));
  return {
    opened,
    open: () => {
      open();
    },
  };
}
