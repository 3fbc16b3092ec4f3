import { connect } from 'node:net';
import { NightporterError } from '@nightporter/protocol';
import type { EmbeddedServer } from './server.js';

const CONNECT_LIMIT_MS = 5_000;

/** A server that somebody else runs: it can be used, and nothing else. */
export function externalServer(at: { variable: string; version: string }): EmbeddedServer {
  const refusal = (what: string) =>
    new NightporterError(
      'NP_EMBEDDED_NOT_OURS',
      `The server was given by ${at.variable}, so it is not ours to ${what}`,
    );
  return {
    owned: false,
    version: at.version,
    processId: undefined,
    kill: () => Promise.reject(refusal('kill')),
    pause: () => {
      throw refusal('pause');
    },
    resume: () => {
      throw refusal('resume');
    },
    restart: () => Promise.reject(refusal('restart')),
    stop: () => Promise.resolve(),
  };
}

/** Throws NP_EMBEDDED_START_FAILED unless something accepts connections at one of the `host:port;host:port…`. */
export async function assertReachable(at: { variable: string; endpoints: string }): Promise<void> {
  const refusals: string[] = [];
  for (const endpoint of at.endpoints.split(/[;,]/)) {
    const refusal = await tryConnect(endpoint.trim());
    if (refusal === undefined) return;
    refusals.push(`${endpoint}: ${refusal}`);
  }
  throw new NightporterError(
    'NP_EMBEDDED_START_FAILED',
    `${at.variable} is set, but nothing accepts connections there (${refusals.join('; ')}). Start that server, or unset ${at.variable}.`,
  );
}

async function tryConnect(endpoint: string): Promise<string | undefined> {
  const match = /^(.+):(\d{1,5})$/.exec(endpoint);
  if (match?.[1] === undefined) return 'it is not of the form host:port';
  const socket = connect({ host: match[1], port: Number(match[2]), timeout: CONNECT_LIMIT_MS });
  try {
    return await new Promise<string | undefined>((resolve) => {
      socket.once('connect', () => {
        resolve(undefined);
      });
      socket.once('timeout', () => {
        resolve(`no answer within ${CONNECT_LIMIT_MS} ms`);
      });
      socket.once('error', (error) => {
        resolve(error.message);
      });
    });
  } finally {
    socket.destroy();
  }
}
