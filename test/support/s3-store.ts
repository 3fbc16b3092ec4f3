import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, request, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import S3rver from 's3rver';

/** What becomes of a request. `late`: the store carries it out once `land` is called, and its sender never hears of it. */
export type Fate =
  | 'served'
  | 'reset'
  | 'silent'
  | 'answer-lost'
  | 'answer-cut'
  | 'answer-stuck'
  | 'late'
  | { readonly status: number; readonly body: string };

interface Asked {
  readonly method: string;
  /** Of the object, without the bucket. */
  readonly key: string;
  readonly headers: IncomingMessage['headers'];
  readonly body: Buffer;
}

export interface S3Store {
  /** By which the SDK finds it. */
  readonly env: Readonly<Record<string, string>>;
  readonly location: (prefix?: string) => string;
  readonly asked: readonly Asked[];
  /** Connections that are open. */
  readonly connections: () => Promise<number>;
  /** Decides about each request from now on. */
  readonly meet: (fate: (asked: Asked) => Fate) => void;
  /** Carries out what was late. */
  readonly land: () => Promise<void>;
  /** All keys, in order. */
  readonly keys: () => Promise<readonly string[]>;
  down(): Promise<void>;
  up(): Promise<void>;
  close(): Promise<void>;
}

const BUCKET = 'archive';
const LOOPBACK = '127.0.0.1';

/** What stands before the emulator. */
interface Front {
  readonly emulatorPort: number;
  readonly asked: Asked[];
  readonly late: (() => Promise<unknown>)[];
  fateOf: (asked: Asked) => Fate;
}

/**
 * An S3 emulator (s3rver) on the loopback interface, and before it what it lacks: it checks checksums, as S3 does, and demands them, as S3 does of
 * a bucket with locks; and it fails as it is told to.
 */
export async function startS3Store(): Promise<S3Store> {
  const directory = await mkdtemp(join(tmpdir(), 'nightporter-s3-'));
  const configureBuckets = [{ name: BUCKET }];
  const emulator = new S3rver({ address: LOOPBACK, port: 0, silent: true, directory, configureBuckets });
  const { port: emulatorPort } = await emulator.run();
  const front: Front = { emulatorPort, asked: [], late: [], fateOf: () => 'served' };
  const server = createServer((incoming, answer) => {
    void serve(front, incoming, answer).catch(() => incoming.socket.destroy());
  });
  const port = await listen(server, 0);
  return {
    env: environmentOf(port),
    location: (prefix = '') => `s3://${BUCKET}/${prefix}?path-style`,
    asked: front.asked,
    connections: () => connectionsOf(server),
    meet(fate) {
      front.fateOf = fate;
    },
    async land() {
      for (const forward of front.late.splice(0)) await forward();
    },
    keys: () => keysOf(emulatorPort),
    down: () => closed(server),
    async up() {
      await listen(server, port);
    },
    async close() {
      await closed(server);
      await emulator.close();
      await rm(directory, { recursive: true, force: true });
    },
  };
}

function environmentOf(port: number): Readonly<Record<string, string>> {
  return {
    AWS_ENDPOINT_URL_S3: `http://${LOOPBACK}:${port}`,
    AWS_REGION: 'us-east-1',
    AWS_ACCESS_KEY_ID: 'S3RVER',
    AWS_SECRET_ACCESS_KEY: 'a-secret-of-the-store',
    AWS_EC2_METADATA_DISABLED: 'true',
    AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED: 'true',
  };
}

async function serve(front: Front, incoming: IncomingMessage, answer: ServerResponse): Promise<void> {
  const { headers, method = '', url = '' } = incoming;
  const body = await buffer(incoming);
  const key = decodeURIComponent(url.split('?', 1)[0] ?? '').slice(`/${BUCKET}/`.length);
  const asked: Asked = { method, key, headers, body };
  front.asked.push(asked);
  const forward = () => sent({ port: front.emulatorPort, method, url, headers, body });
  const fate = front.fateOf(asked);
  if (fate === 'late') front.late.push(forward);
  if (fate === 'reset') incoming.socket.destroy();
  if (fate === 'silent' || fate === 'late' || fate === 'reset') return;
  const reply = refusal(fate, asked) ?? (await forward());
  if (fate === 'answer-lost') {
    incoming.socket.destroy();
    return;
  }
  answer.writeHead(reply.status, reply.headers);
  if (fate !== 'answer-cut' && fate !== 'answer-stuck') {
    answer.end(reply.body);
    return;
  }
  answer.write(reply.body.subarray(0, reply.body.length / 2));
  if (fate === 'answer-cut') setImmediate(() => incoming.socket.destroy());
}

function refusal(fate: Fate, { body, headers, method }: Asked) {
  const told = typeof fate === 'object' ? fate : null;
  if (told !== null) return { status: told.status, headers: {}, body: Buffer.from(told.body) };
  const claimed = headers['x-amz-checksum-sha256'];
  if (method !== 'PUT' || claimed === createHash('sha256').update(body).digest('base64')) return null;
  const code = claimed === undefined ? 'InvalidRequest' : 'BadDigest';
  const xml = `<Error><Code>${code}</Code><Message>The checksum is missing or wrong.</Message></Error>`;
  return { status: 400, headers: { 'content-type': 'application/xml' }, body: Buffer.from(xml) };
}

async function listen(server: Server, port: number): Promise<number> {
  server.listen(port, LOOPBACK);
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

async function closed(server: Server): Promise<void> {
  if (!server.listening) return;
  const end = once(server, 'close');
  server.close();
  server.closeAllConnections();
  await end;
}

function connectionsOf(server: Server): Promise<number> {
  return new Promise((resolve, reject) => {
    server.getConnections((error, count) => {
      if (error === null) resolve(count);
      else reject(error);
    });
  });
}

async function keysOf(port: number): Promise<readonly string[]> {
  const url = `/${BUCKET}?list-type=2&max-keys=1000`;
  const { body } = await sent({ port, method: 'GET', url, headers: {}, body: Buffer.of() });
  return [...body.toString().matchAll(/<Key>([^<]+)<\/Key>/g)].map(([, key = '']) => key).sort();
}

interface Sending {
  readonly port: number;
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingMessage['headers'];
  readonly body: Buffer;
}

async function sent({ body, headers, method, port, url }: Sending) {
  const outgoing = request({ host: LOOPBACK, port, method, path: url, headers: { ...headers, connection: 'close' } });
  outgoing.end(body);
  const [answer] = (await once(outgoing, 'response')) as [IncomingMessage];
  return { status: answer.statusCode ?? 500, headers: answer.headers, body: await buffer(answer) };
}
