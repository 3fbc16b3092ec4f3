import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startRocketMq, type RocketMqServer } from '@nightporter/embedded';
import { isNightporterError, type ErrorCode } from '@nightporter/protocol';
import { preflightGroup, preflightTopic } from '@nightporter/rocketmq';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { showFigures } from '../support/figures.js';
import { untilGiven } from './rocketmq-samples.js';

/** A server of its own: the commands of an operator need its name server. */
let server: RocketMqServer;
/** Where the tool writes its logs. */
let home: string;

beforeAll(async () => {
  home = mkdtempSync(join(tmpdir(), 'nightporter-mqadmin-'));
  server = await startRocketMq({ topics: [{ name: 'orders-events', queues: 6 }] });
});

afterAll(async () => {
  await server.stop();
  rmSync(home, { recursive: true, force: true });
});

function admin() {
  return { endpoints: server.endpoints, nameServer: server.nameServer ?? '' };
}

async function refusal(code: ErrorCode, preflight: () => Promise<unknown>): Promise<string> {
  try {
    await preflight();
  } catch (error) {
    if (isNightporterError(error, code)) return error.message;
    throw error;
  }
  throw new Error(`${code} was expected`);
}

function commandIn(message: string): string {
  const command = /mqadmin (.+)$/.exec(message)?.[1];
  if (command === undefined) throw new Error(`no command in: ${message}`);
  return command;
}

/** Runs the command that a refusal names, as an operator would paste it, with the server's own jars. */
async function obey(message: string): Promise<void> {
  const running = readFileSync(`/proc/${server.processId ?? 0}/cmdline`, 'utf8').split('\0');
  const [java = ''] = running;
  const classPath = running[running.indexOf('-cp') + 1] ?? '';
  const child = spawn(
    java,
    [
      '-XX:TieredStopAtLevel=1',
      '-Drmq.log.root.level=OFF',
      `-Duser.home=${home}`,
      '-cp',
      classPath,
      'org.apache.rocketmq.tools.command.MQAdminStartup',
      ...commandIn(message).split(' '),
    ],
    { stdio: ['ignore', 'pipe', 'pipe'] },
  );
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (data: Buffer) => (output += data.toString()));
  await once(child, 'close');
  expect(output).toMatch(/success/);
}

/** Resolves once the preflight accepts what was mended; proxies keep what they know for a moment. */
async function accepted<Facts>(preflight: () => Promise<Facts>): Promise<Facts> {
  return await untilGiven(() => preflight().catch(() => null), { limitMs: 30_000, what: 'the preflight accepts it' });
}

it('A FIFO topic is accepted, with the number of its queues', async () => {
  expect(await preflightTopic({ ...admin(), topic: 'orders-events' })).toEqual({
    topic: 'orders-events',
    queueCount: 6,
  });
});

it('A topic that is missing is refused with the command that creates it', async () => {
  const preflight = () => preflightTopic({ ...admin(), topic: 'missing-events' });
  await obey(await refusal('NP_PREFLIGHT_TOPIC_MISSING', preflight));
  expect(await accepted(preflight)).toEqual({ topic: 'missing-events', queueCount: 8 });
});

it('A topic of the wrong type is refused with the command that mends it and keeps its queues', async (context) => {
  await server.createTopic({ name: 'normal-events', type: 'NORMAL', queues: 3 });
  const preflight = () => preflightTopic({ ...admin(), topic: 'normal-events' });
  const message = await refusal('NP_PREFLIGHT_TOPIC_TYPE', preflight);
  expect(message).toContain('takes NORMAL messages; accepted: FIFO');
  await obey(message);
  expect(await accepted(preflight)).toEqual({ topic: 'normal-events', queueCount: 3 });
  showFigures(context, { refused: 1, 'accepted after its command': 1 });
});

it('A topic that cannot be written is refused with the command that mends it', async () => {
  await server.createTopic({ name: 'closed-events', writable: false, queues: 2 });
  const preflight = () => preflightTopic({ ...admin(), topic: 'closed-events' });
  await obey(await refusal('NP_PREFLIGHT_TOPIC_TYPE', preflight));
  expect(await accepted(preflight)).toEqual({ topic: 'closed-events', queueCount: 2 });
});

it('A group that is ordered and keeps its messages is accepted', async () => {
  await server.createGroup({ name: 'ready', retryMaxTimes: 500 });
  const facts = await preflightGroup({ ...admin(), group: 'ready', topic: 'orders-events' });
  expect(facts).toEqual({ group: 'ready', retryTimesMax: 500 });
});

it('A group that is missing is refused with the command that creates it', async () => {
  const preflight = () => preflightGroup({ ...admin(), group: 'missing', topic: 'orders-events' });
  await obey(await refusal('NP_PREFLIGHT_GROUP_MISSING', preflight));
  expect(await accepted(preflight)).toEqual({ group: 'missing', retryTimesMax: 10_000 });
});

it('A group without ordered consumption, or with few retries, is refused with the command that mends both', async (context) => {
  const preflight = () => preflightGroup({ ...admin(), group: 'unordered', topic: 'orders-events' });
  await server.createGroup({ name: 'unordered', retryMaxTimes: 3 });
  await refusal('NP_PREFLIGHT_GROUP_RETRIES', preflight);
  await server.createGroup({ name: 'unordered', retryMaxTimes: -1 });
  const tooFew = await refusal('NP_PREFLIGHT_GROUP_RETRIES', preflight);
  expect(tooFew).toContain('retryMaxTimes -1; accepted: 100 or more');
  await server.createGroup({ name: 'unordered', ordered: false, retryMaxTimes: -1 });
  const unordered = await refusal('NP_PREFLIGHT_GROUP_UNORDERED', preflight);
  expect(commandIn(unordered)).toEqual(commandIn(tooFew));
  await obey(unordered);
  expect(await accepted(preflight)).toEqual({ group: 'unordered', retryTimesMax: 10_000 });
  showFigures(context, { refused: 3, 'accepted after its command': 1 });
});

it('A broker that cannot be asked is no refusal', async () => {
  const nobody = { endpoints: '127.0.0.1:1', topic: 'orders-events', group: 'ready' };
  await refusal('NP_BROKER_UNAVAILABLE', () => preflightTopic(nobody));
  await refusal('NP_BROKER_UNAVAILABLE', () => preflightGroup(nobody));
});
