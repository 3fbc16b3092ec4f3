import { createConnection, createServer, type Server, type Socket } from 'node:net';

/**
 * What befalls a commit on its way. `lose-answer`: it is carried out, and the connection breaks before the answer. `lose-database`: the
 * same, and nothing passes the proxy any more. `lose-request`: the connection breaks before it arrives. `delayMs`: the connection
 * breaks, and it arrives later, on its own.
 */
export type CommitFault = 'lose-answer' | 'lose-database' | 'lose-request' | { readonly delayMs: number };

export interface CommitProxy {
  /** Connection string of the database behind this proxy. */
  readonly uri: string;
  /** Commits that have passed or met a fault. */
  readonly commits: () => number;
  /** The next commits meet these faults, one each; those after them pass. */
  strike(...faults: readonly CommitFault[]): void;
  close(): Promise<void>;
}

/** A TCP proxy that understands as much of MongoDB's wire protocol as it takes to find a commit and its answer. */
export async function startCommitProxy(target: { readonly host: string; readonly port: number }): Promise<CommitProxy> {
  const faults: CommitFault[] = [];
  const sockets = new Set<Socket>();
  let commits = 0;
  let lost = false;
  const server = createServer((client) => {
    if (lost) {
      client.destroy();
      return;
    }
    const upstream = createConnection(target);
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.on('error', () => socket.destroy());
      socket.on('close', () => sockets.delete(socket));
    }
    client.on('close', () => upstream.end());
    upstream.on('close', () => client.destroy());
    let lostAnswerTo: number | null = null;
    let cut = false;
    client.on(
      'data',
      messages((message) => {
        if (cut || lost) return;
        if (!message.includes(COMMIT)) {
          upstream.write(message);
          return;
        }
        commits += 1;
        const fault = faults.shift();
        if (fault === undefined || fault === 'lose-answer' || fault === 'lose-database') {
          if (fault !== undefined) lostAnswerTo = requestIdOf(message);
          lost ||= fault === 'lose-database';
          upstream.write(message);
          return;
        }
        cut = true;
        client.removeAllListeners('close');
        client.destroy();
        if (fault === 'lose-request') upstream.destroy();
        else setTimeout(() => upstream.write(message), fault.delayMs);
      }),
    );
    upstream.on(
      'data',
      messages((message) => {
        if (lostAnswerTo !== null && responseToOf(message) === lostAnswerTo) client.destroy();
        else if (!cut) client.write(message);
      }),
    );
  });
  const port = await listen(server);
  return {
    uri: `mongodb://127.0.0.1:${port}/?directConnection=true`,
    commits: () => commits,
    strike: (...added) => {
      faults.push(...added);
    },
    close: async () => {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

const COMMIT = Buffer.from('commitTransaction\0');

const requestIdOf = (message: Buffer): number => message.readInt32LE(4);
const responseToOf = (message: Buffer): number => message.readInt32LE(8);

/** Cuts a byte stream into the messages of the wire protocol, each led by its length. */
function messages(each: (message: Buffer) => void): (chunk: Buffer) => void {
  let rest = Buffer.alloc(0);
  return (chunk) => {
    rest = Buffer.concat([rest, chunk]);
    while (rest.length >= 4 && rest.length >= rest.readInt32LE(0)) {
      const length = rest.readInt32LE(0);
      each(rest.subarray(0, length));
      rest = rest.subarray(length);
    }
  };
}

async function listen(server: Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('the proxy has no port');
  return address.port;
}
