import { connect, createServer, type AddressInfo, type Socket } from 'node:net';

/** A TCP proxy in front of a broker that is slow: every answer comes so much later. Clients must `alwaysUseEndpoints`. */
export interface SlowBroker {
  readonly endpoints: string;
  close(): Promise<void>;
}

export async function startSlowBroker(target: string, { delayMs }: { delayMs: number }): Promise<SlowBroker> {
  const [host = '', port = ''] = target.split(':');
  const sockets = new Set<Socket>();
  const server = createServer((client) => {
    const upstream = connect({ host, port: Number(port) });
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.on('error', () => socket.destroy());
      socket.on('close', () => {
        sockets.delete(socket);
        client.destroy();
        upstream.destroy();
      });
    }
    client.pipe(upstream);
    upstream.on('data', (data) => {
      // Timers of one length end in the order in which they began, so the bytes stay in order.
      setTimeout(() => {
        if (!client.destroyed) client.write(data);
      }, delayMs);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    endpoints: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    async close() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
