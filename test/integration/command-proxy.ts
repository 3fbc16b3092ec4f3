import { createConnection, createServer, type Server, type Socket } from 'node:net';

/**
 * What befalls a command on its way. `lose-answer`: it is carried out, and the connection breaks before the answer. `lose-database`: the
 * same, and nothing passes the proxy any more. `lose-request`: the connection breaks before it arrives. `delayMs`: the connection
 * breaks, and it arrives later, on its own.
 */
export type CommandFault = 'lose-answer' | 'lose-database' | 'lose-request' | { readonly delayMs: number };

/** `insert`, `findAndModify`, `commitTransaction` … */
export type CommandName = string;

export interface CommandProxy {
  /** Connection string of the database behind this proxy. */
  readonly uri: string;
  /** How many commands of this name have passed, or met a fault, since the first strike or count of it. */
  count(command: CommandName): number;
  /** The next commands of this name meet these faults, one each; those after them pass. */
  strike(command: CommandName, ...faults: readonly CommandFault[]): void;
  close(): Promise<void>;
}

/** Of one command: the faults to come, and how many have been seen. */
interface Watch {
  readonly needle: Buffer;
  readonly faults: CommandFault[];
  seen: number;
}

/** A TCP proxy that understands as much of MongoDB's wire protocol as it takes to find a command and its answer. */
export async function startCommandProxy(target: {
  readonly host: string;
  readonly port: number;
}): Promise<CommandProxy> {
  const watches = new Map<CommandName, Watch>();
  const sockets = new Set<Socket>();
  const state = { lost: false };
  const watch = (command: CommandName): Watch => {
    const known = watches.get(command) ?? { needle: Buffer.from(`${command}\0`), faults: [], seen: 0 };
    watches.set(command, known);
    return known;
  };
  const server = createServer((client) => {
    if (state.lost) {
      client.destroy();
      return;
    }
    const upstream = createConnection(target);
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.on('error', () => socket.destroy());
      socket.on('close', () => sockets.delete(socket));
    }
    relay({ client, upstream, watches, state });
  });
  const port = await listen(server);
  return {
    uri: `mongodb://127.0.0.1:${port}/?directConnection=true`,
    count: (command) => watch(command).seen,
    strike: (command, ...faults) => {
      watch(command).faults.push(...faults);
    },
    close: async () => {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

interface Pair {
  readonly client: Socket;
  readonly upstream: Socket;
  readonly watches: ReadonlyMap<CommandName, Watch>;
  readonly state: { lost: boolean };
}

function relay({ client, upstream, watches, state }: Pair): void {
  let lostAnswerTo: number | null = null;
  let cut = false;
  const endUpstream = (): void => {
    upstream.end();
  };
  client.on('close', endUpstream);
  upstream.on('close', () => client.destroy());
  client.on(
    'data',
    messages((message) => {
      if (cut || state.lost) return;
      const watched = [...watches.values()].find(({ needle }) => message.includes(needle));
      const fault = watched?.faults.shift();
      if (watched !== undefined) watched.seen += 1;
      if (fault === 'lose-request' || typeof fault === 'object') {
        cut = true;
        client.off('close', endUpstream);
        client.destroy();
        if (fault === 'lose-request') upstream.destroy();
        else setTimeout(() => upstream.write(message), fault.delayMs);
        return;
      }
      if (fault !== undefined) lostAnswerTo = requestIdOf(message);
      state.lost ||= fault === 'lose-database';
      upstream.write(message);
    }),
  );
  upstream.on(
    'data',
    messages((message) => {
      if (lostAnswerTo !== null && responseToOf(message) === lostAnswerTo) client.destroy();
      else if (!cut) client.write(message);
    }),
  );
}

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
