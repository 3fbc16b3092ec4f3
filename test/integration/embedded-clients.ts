import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

/**
 * RocketMQ's own client, in a process of its own for each call: when a broker is killed, streams of clients that were shut down
 * long before still throw where nobody can catch it.
 */
const SCRIPT = `
import { FilterExpression, Producer, SimpleConsumer } from 'rocketmq-client-nodejs';

const [call] = process.argv.slice(1);
const { kind, endpoints, topic, group, bodies, count, limitMs } = JSON.parse(call);
const silent = () => undefined;
const logger = { info: silent, warn: silent, error: silent, debug: silent };
const options = { endpoints, namespace: '', logger, requestTimeout: 5000 };

async function send() {
  const producer = new Producer({ ...options, topic });
  await producer.startup();
  for (const [index, body] of bodies.entries()) {
    await producer.send({ topic, tag: 'test', body: Buffer.from(body), messageGroup: 'aggregate-' + (index % 3) });
  }
  return [];
}

async function receive() {
  const subscriptions = new Map([[topic, FilterExpression.SUB_ALL]]);
  const consumer = new SimpleConsumer({ ...options, consumerGroup: group, subscriptions, awaitDuration: 1000 });
  await consumer.startup();
  const received = new Set();
  for (const deadline = Date.now() + limitMs; received.size < count && Date.now() < deadline; ) {
    for (const message of await consumer.receive(32, 10000)) {
      received.add(message.body.toString());
      await consumer.ack(message);
    }
  }
  return [...received].sort();
}

const result = await (kind === 'send' ? send() : receive());
process.stdout.write(JSON.stringify(result), () => process.exit(0));
`;

const RECEIVE_LIMIT_MS = 20_000;
const CALL_LIMIT_MS = 60_000;

interface At {
  endpoints: string;
  topic: string;
}

/** Sends one message after another; each is stored by the broker once this resolves. */
export async function sendAll(at: At, bodies: string[]): Promise<void> {
  await run({ kind: 'send', ...at, bodies });
}

/** Receives and acknowledges until `count` different bodies have come, or 20 s are over. Returns what came, sorted. */
export async function receiveAll(at: At & { group: string; count: number }): Promise<string[]> {
  return run({ kind: 'receive', ...at, limitMs: RECEIVE_LIMIT_MS });
}

async function run(call: object): Promise<string[]> {
  const child = spawn(process.execPath, ['--input-type=module', '--eval', SCRIPT, JSON.stringify(call)], {
    cwd: fileURLToPath(new URL('../', import.meta.url)),
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: CALL_LIMIT_MS,
  });
  let output = '';
  let errors = '';
  child.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()));
  child.stderr.on('data', (chunk: Buffer) => (errors += chunk.toString()));
  const [code] = (await once(child, 'close')) as [number | null];
  if (code !== 0) throw new Error(`the client failed:\n${errors}`);
  return JSON.parse(output) as string[];
}
