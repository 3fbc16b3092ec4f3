import { createServer, type Server } from 'node:net';
import { NightporterError } from '@nightporter/protocol';

const LOOPBACK = '127.0.0.1';
/** Below the ports that the system gives to outgoing connections, so that none of those can take ours between kill and restart. */
const FIRST_PORT = 20_000;
const LAST_PORT = 31_999;
const BLOCK_PORTS = 8;
const BLOCKS = (LAST_PORT + 1 - FIRST_PORT) / BLOCK_PORTS;

/** Seven consecutive ports, free when they were reserved, and no other reservation's until `release`. */
export interface PortReservation {
  /** The port at a position 0…6 of the block. */
  port: (position: number) => number;
  release: () => void;
}

/**
 * Reserves a block of ports on the loopback interface. The last port of the block is held open as its guard for as long as the
 * reservation lasts: the operating system makes it exclusive among all stacks of the machine, also while a server of ours is
 * down between kill and restart, and gives it back however this process ends.
 */
export async function reservePorts(): Promise<PortReservation> {
  const start = Math.floor(Math.random() * BLOCKS);
  for (let step = 0; step < BLOCKS; step += 1) {
    const base = FIRST_PORT + ((start + step) % BLOCKS) * BLOCK_PORTS;
    const guard = await listen(base + BLOCK_PORTS - 1);
    if (guard === undefined) continue;
    if (await areFree(base)) return { port: (position) => base + position, release: () => guard.close() };
    guard.close();
  }
  throw new NightporterError(
    'NP_EMBEDDED_START_FAILED',
    `No block of ${BLOCK_PORTS} free ports between ${FIRST_PORT} and ${LAST_PORT}`,
  );
}

/** The guard serves nobody, and does not keep this process from ending. */
async function listen(port: number): Promise<Server | undefined> {
  const server = createServer((socket) => socket.destroy());
  server.unref();
  return new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'EADDRINUSE' || error.code === 'EACCES') resolve(undefined);
      else reject(error);
    });
    server.listen(port, LOOPBACK, () => {
      resolve(server);
    });
  });
}

async function areFree(base: number): Promise<boolean> {
  for (let port = base; port < base + BLOCK_PORTS - 1; port += 1) {
    const probe = await listen(port);
    if (probe === undefined) return false;
    await new Promise((resolve) => probe.close(resolve));
  }
  return true;
}

/** Whether a server failed to start because somebody else, who reserves nothing, took one of its ports first. */
export function isPortTaken(failure: unknown): boolean {
  return failure instanceof Error && /already in use|failed to bind/i.test(failure.message);
}
