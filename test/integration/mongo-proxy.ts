import { connect, createServer, type AddressInfo, type Socket } from 'node:net';

/** A TCP proxy that can lose answers and cut connections. */
export interface MongoProxy {
  readonly uri: string;
  /** From now on the answers to this command get lost with their connection, `times` times. The server has carried it out. */
  loseAnswers(command: string, times: number): void;
  /** How often an answer was lost. */
  readonly lost: number;
  /** Cuts every connection and takes no new one until `restore`. */
  cut(): void;
  /** Takes what is sent and new connections, and passes nothing on until `restore`. */
  stall(): void;
  restore(): void;
  close(): Promise<void>;
}

export async function startMongoProxy(target: string): Promise<MongoProxy> {
  const { hostname, port } = new URL(target);
  const sockets = new Set<Socket>();
  let isCut = false;
  let isStalled = false;
  let armed: { command: Buffer; times: number } | undefined;
  let lost = 0;

  const server = createServer((client) => {
    if (isCut) {
      client.destroy();
      return;
    }
    const upstream = connect({ host: hostname, port: Number(port) });
    let losing = false;
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      if (isStalled) socket.pause();
      socket.on('error', () => socket.destroy());
      socket.on('close', () => {
        sockets.delete(socket);
        client.destroy();
        upstream.destroy();
      });
    }
    client.on('data', (data) => {
      if (armed !== undefined && armed.times > 0 && data.includes(armed.command)) {
        armed.times -= 1;
        losing = true;
      }
      upstream.write(data);
    });
    upstream.on('data', (data) => {
      if (!losing) {
        client.write(data);
        return;
      }
      lost += 1;
      client.destroy();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port: ownPort } = server.address() as AddressInfo;
  const cutAll = (): void => {
    for (const socket of sockets) socket.destroy();
  };
  return {
    // The replica set would lead past the proxy.
    uri: `mongodb://127.0.0.1:${ownPort}/?directConnection=true`,
    loseAnswers(command, times) {
      armed = { command: Buffer.from(command), times };
    },
    get lost() {
      return lost;
    },
    cut() {
      isCut = true;
      cutAll();
    },
    stall() {
      isStalled = true;
      for (const socket of sockets) socket.pause();
    },
    restore() {
      isCut = false;
      isStalled = false;
      for (const socket of sockets) socket.resume();
    },
    async close() {
      cutAll();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
