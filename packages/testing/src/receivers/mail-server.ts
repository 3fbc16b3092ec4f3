import { once } from 'node:events';
import { createServer, type AddressInfo, type Socket } from 'node:net';

export interface Mail {
  readonly to: string;
  readonly data: string;
}

export interface MailServer {
  readonly url: string;
  readonly mails: readonly Mail[];
  close(): Promise<void>;
}

/** As much of a mail server (RFC 5321) as takes mails. `answer` says what to reply to a recipient: `250`, `550 no such box` … */
export async function startMailServer(answer: (recipient: string) => string = () => '250 ok'): Promise<MailServer> {
  const mails: Mail[] = [];
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
    // A client that goes away is none of the server's errors.
    socket.on('error', () => socket.destroy());
    converse(socket, { answer, keep: (mail) => mails.push(mail) });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `smtp://127.0.0.1:${(server.address() as AddressInfo).port}`,
    mails,
    close: async () => {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}

function converse(
  socket: Socket,
  { answer, keep }: { answer: (recipient: string) => string; keep: (mail: Mail) => void },
): void {
  const say = (line: string): void => void socket.write(`${line}\r\n`);
  let to = '';
  let data: string | null = null;
  let rest = '';
  say('220 here');
  socket.setEncoding('utf8').on('data', (chunk: string) => {
    const lines = (rest + chunk).split('\r\n');
    rest = lines.pop() ?? '';
    for (const line of lines) {
      if (data !== null && line !== '.') {
        data += `${line.startsWith('..') ? line.slice(1) : line}\n`;
      } else if (data !== null) {
        keep({ to, data });
        data = null;
        say('250 kept as 42');
      } else if (/^RCPT TO:<(.*)>/i.test(line)) {
        to = /<(.*)>/.exec(line)?.[1] ?? '';
        say(answer(to));
      } else if (/^DATA/i.test(line)) {
        data = '';
        say('354 go on');
      } else if (/^QUIT/i.test(line)) {
        say('221 bye');
        socket.end();
      } else {
        say('250 ok');
      }
    }
  });
}
