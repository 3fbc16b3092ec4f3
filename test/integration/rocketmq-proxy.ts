import { connect, createServer, type AddressInfo, type Socket } from 'node:net';

/** A TCP proxy in front of the broker's gRPC proxy. Routes lead past it: clients must `alwaysUseEndpoints`. */
export interface BrokerProxy {
  readonly endpoints: string;
  /** The next request that holds this text is carried out; its answer, and the connection, are lost. */
  loseAnswerTo(text: string): void;
  /** From now on nothing passes through the connections that are open, and they stay open. New ones work. */
  stall(): void;
  close(): Promise<void>;
}

/** Longer than the broker needs for a send. */
const CUT_AFTER_MS = 1_000;

export async function startBrokerProxy(target: string): Promise<BrokerProxy> {
  const [host = '', port = ''] = target.split(':');
  const sockets = new Set<Socket>();
  let generation = 1;
  let lost: Buffer | undefined;

  const server = createServer((client) => {
    const born = generation;
    const upstream = connect({ host, port: Number(port) });
    let losing = false;
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.on('error', () => socket.destroy());
      socket.on('close', () => {
        sockets.delete(socket);
        client.destroy();
        upstream.destroy();
      });
    }
    client.on('data', (data) => {
      if (born < generation) return;
      upstream.write(data);
      if (lost === undefined || !data.includes(lost)) return;
      lost = undefined;
      losing = true;
      setTimeout(() => client.destroy(), CUT_AFTER_MS);
    });
    upstream.on('data', (data) => {
      if (!losing && born === generation) client.write(data);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const cutAll = (): void => {
    for (const socket of sockets) socket.destroy();
  };
  return {
    endpoints: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    loseAnswerTo(text) {
      lost = Buffer.from(text);
    },
    stall() {
      generation += 1;
    },
    async close() {
      cutAll();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
