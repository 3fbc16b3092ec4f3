import { createServer } from 'node:net';
import { expect, test } from 'vitest';
import { isPortTaken, reservePorts } from './ports.js';

async function listen(port: number): Promise<() => Promise<unknown>> {
  const server = createServer();
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, '127.0.0.1', resolve);
  });
  return () => new Promise((resolve) => server.close(resolve));
}

test('reservations made at once share no port, and their ports can be listened on', async () => {
  const reservations = await Promise.all(Array.from({ length: 20 }, reservePorts));
  const ports = reservations.flatMap(({ port }) => [0, 1, 2, 3, 4, 5, 6].map(port));
  expect(new Set(ports).size).toBe(ports.length);
  expect(ports.every((port) => port >= 20_000 && port < 32_000)).toBe(true);
  const close = await listen(ports[0]!);
  await close();
  for (const reservation of reservations) reservation.release();
});

test('a reserved block stays reserved while nothing listens on its ports', async () => {
  const reservation = await reservePorts();
  await expect(listen(reservation.port(7))).rejects.toThrow(/EADDRINUSE/);
  reservation.release();
  await expect.poll(async () => (await listen(reservation.port(7)))()).toBeUndefined();
});

test.each([
  ['Port "20001" already in use', true],
  ['java.net.BindException: Address already in use', true],
  ['Failed to bind to 127.0.0.1:20004', true],
  ['no space left on device', false],
])('"%s" means that a port was taken: %s', (message, taken) => {
  expect(isPortTaken(new Error(message))).toBe(taken);
});
