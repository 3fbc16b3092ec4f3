import { createServer, type AddressInfo, type Socket } from 'node:net';
import { expect, it, onTestFinished } from 'vitest';
import { worstSendMs } from '../options.js';
import { StartFailedError, TopicProducer } from './topic-producer.js';

/** Takes connections and says nothing. */
async function startSilentProxy(): Promise<string> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined);
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return `127.0.0.1:${(server.address() as AddressInfo).port}`;
}

it('A send waits no longer for its client to start than for an answer', async () => {
  const endpoints = await startSilentProxy();
  const producer = new TopicProducer({ endpoints, requestTimeoutMs: 1_000, closeTimeoutMs: 500 }, 'orders-events');
  onTestFinished(() => producer.close());
  const message = {
    topic: 'orders-events',
    body: new Uint8Array([1]),
    tag: 'a',
    keys: ['a', 'b'] as const,
    messageGroup: 'a',
    properties: new Map<string, string>(),
  };
  const beganAtMs = performance.now();
  await expect(producer.send(message)).rejects.toBeInstanceOf(StartFailedError);
  expect(performance.now() - beganAtMs).toBeLessThan(worstSendMs({ requestTimeoutMs: 1_000 }));
});
