import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startMongo, startRocketMq, startStack, type Stack } from '@nightporter/embedded';
import { MongoClient } from 'mongodb';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { sharedStack, uniqueName } from '../support/stack.js';
import { receiveAll, sendAll } from './embedded-clients.js';
import { LOOPBACK_ADDRESSES, descendants, expectGone, listeningAddresses } from './embedded-processes.js';

/** Never the addresses of the environment: what is tested here is what we start ourselves. */
const environment = { ...process.env, MONGODB_URI: undefined, ROCKETMQ_ENDPOINTS: undefined };

function client(uri: string): MongoClient {
  const opened = new MongoClient(uri, { serverSelectionTimeoutMS: 10_000 });
  onTestFinished(() => opened.close());
  return opened;
}

function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'nightporter-test-'));
  onTestFinished(() => {
    rmSync(folder, { recursive: true, force: true });
  });
  return folder;
}

/** The throwaway folders that this process has not given up. */
function ownFolders(): string[] {
  const folders = readdirSync(tmpdir()).filter((name) => name.startsWith('nightporter-stack-'));
  return folders.filter((name) => {
    const owner = join(tmpdir(), name, 'owner.json');
    return existsSync(owner) && (JSON.parse(readFileSync(owner, 'utf8')) as { pid: number }).pid === process.pid;
  });
}

describe('a stack of our own', () => {
  let stack: Stack;
  const unexpected: Error[] = [];

  beforeAll(async () => {
    stack = await startStack({
      environment,
      onUnexpectedExit: (error) => unexpected.push(error),
      // As in production, where a route that was asked for too early is remembered for long.
      proxySettings: { topicRouteServiceCacheRefreshSeconds: 20 },
    });
  });
  afterAll(async () => {
    await stack.stop();
    expect(unexpected).toEqual([]);
  });

  test('listens on the loopback interface alone', () => {
    for (const server of [stack.mongodb, stack.rocketmq]) {
      const addresses = listeningAddresses(server.processId!);
      expect(addresses.length).toBeGreaterThan(0);
      expect(addresses.filter((address) => !LOOPBACK_ADDRESSES.includes(address))).toEqual([]);
    }
  });

  test('unpacks its libraries into its own folder, so that they go with it', () => {
    const mapped = readFileSync(`/proc/${stack.rocketmq.processId!}/maps`, 'utf8').split('\n');
    const libraries = mapped.flatMap((line) => /\S*librocksdbjni\S*/.exec(line) ?? []);
    expect(libraries.length).toBeGreaterThan(0);
    const own = ownFolders().map((name) => join(tmpdir(), name));
    expect(libraries.filter((path) => !own.some((folder) => path.startsWith(folder)))).toEqual([]);
  });

  test('MongoDB keeps acknowledged writes and its address over kill -9 and restart', async () => {
    const collection = client(stack.mongodb.uri).db(uniqueName('kill')).collection<{ _id: number }>('acknowledged');
    const acknowledged: number[] = [];
    let down = false;
    const writing = (async () => {
      for (let id = 0; !down; id += 1) {
        await collection.insertOne({ _id: id }, { writeConcern: { w: 'majority' } });
        acknowledged.push(id);
      }
    })().catch(() => undefined); // the write that the kill interrupts
    while (acknowledged.length < 200) await new Promise(setImmediate);
    const { uri } = stack.mongodb;
    await stack.mongodb.kill();
    down = true;
    await stack.mongodb.restart();
    await writing;
    expect(stack.mongodb.uri).toBe(uri);
    const found = new Set((await collection.find().toArray()).map(({ _id }) => _id));
    expect(acknowledged.filter((id) => !found.has(id))).toEqual([]);
  });

  test('what a transaction has written is free again after its lifetime, though nothing but a write that waits for it is left', async () => {
    const server = await startMongo({ environment, parameters: { transactionLifetimeLimitSeconds: '2' } });
    onTestFinished(() => server.stop());
    const collection = client(server.uri).db('lifetime').collection<{ _id: string; count: number }>('documents');
    await collection.insertOne({ _id: 'held', count: 0 });
    const dead = client(server.uri);
    const session = dead.startSession();
    session.startTransaction();
    const held = dead.db('lifetime').collection<{ _id: string }>('documents');
    await held.updateOne({ _id: 'held' }, { $inc: { count: 100 } }, { session });
    await collection.updateOne({ _id: 'held' }, { $inc: { count: 1 } });
    expect(await collection.findOne()).toEqual({ _id: 'held', count: 1 });
  }, 30_000);

  test('a connected client finds MongoDB again after an orderly restart', async () => {
    const collection = client(stack.mongodb.uri).db(uniqueName('restart')).collection('documents');
    await collection.insertOne({ before: true });
    await stack.mongodb.restart();
    expect(await collection.countDocuments()).toBe(1);
  });

  test('a new topic and group can be used at once, and nothing sent after the group came is missed', async () => {
    const { endpoints } = stack.rocketmq;
    const topic = uniqueName('live');
    const group = uniqueName('group');
    const early = sendAll({ endpoints, topic }, ['too early']);
    await expect(early).rejects.toThrow(); // and the proxy now remembers that there is no route
    await stack.rocketmq.createTopic({ name: topic, queues: 4 });
    await sendAll({ endpoints, topic }, ['before the group']);
    await stack.rocketmq.createGroup({ name: group, topics: [topic] });
    await sendAll({ endpoints, topic }, ['a', 'b', 'c']);
    expect(await receiveAll({ endpoints, topic, group, count: 3 })).toEqual(['a', 'b', 'c']);
  });

  test('RocketMQ keeps acknowledged messages, topics, groups and its address over kill -9 and restart', async () => {
    const { endpoints } = stack.rocketmq;
    const topic = uniqueName('kill');
    const group = uniqueName('group');
    await stack.rocketmq.createTopic({ name: topic });
    await stack.rocketmq.createGroup({ name: group, topics: [topic] });
    const bodies = Array.from({ length: 30 }, (_, index) => `message-${String(index).padStart(2, '0')}`);
    await sendAll({ endpoints, topic }, bodies);
    await stack.rocketmq.kill();
    await expect(stack.rocketmq.offsets({ topic })).rejects.toMatchObject({ code: 'NP_EMBEDDED_CONTROL_FAILED' });
    await stack.rocketmq.restart();
    expect(stack.rocketmq.endpoints).toBe(endpoints);
    expect(await receiveAll({ endpoints, topic, group, count: bodies.length })).toEqual(bodies);
  });

  test('a rewound group receives again what it had acknowledged', async () => {
    const { endpoints } = stack.rocketmq;
    const topic = uniqueName('rewind');
    const group = uniqueName('group');
    await stack.rocketmq.createTopic({ name: topic, queues: 2 });
    await stack.rocketmq.createGroup({ name: group, topics: [topic] });
    await sendAll({ endpoints, topic }, ['a', 'b', 'c']);
    const lag = async () =>
      (await stack.rocketmq.offsets({ topic, group })).reduce((sum, queue) => sum + queue.lag!, 0);
    expect(await lag()).toBe(3);
    expect(await receiveAll({ endpoints, topic, group, count: 3 })).toEqual(['a', 'b', 'c']);
    expect(await lag()).toBe(0);
    await stack.rocketmq.rewind({ topic, group });
    expect(await receiveAll({ endpoints, topic, group, count: 3 })).toEqual(['a', 'b', 'c']);
  });

  test('a topic that is not writable refuses messages until it is writable again', async () => {
    const { endpoints } = stack.rocketmq;
    const topic = uniqueName('closed');
    await stack.rocketmq.createTopic({ name: topic, writable: false });
    await expect(sendAll({ endpoints, topic }, ['refused'])).rejects.toThrow();
    await stack.rocketmq.createTopic({ name: topic });
    await sendAll({ endpoints, topic }, ['accepted']);
  });

  test('a paused MongoDB answers nobody until it is resumed', async () => {
    const database = client(stack.mongodb.uri).db('admin');
    await database.command({ ping: 1 });
    stack.mongodb.pause();
    // The signal stops a busy server a moment later; what it was asked before that, it may still answer.
    await expect.poll(() => readFileSync(`/proc/${stack.mongodb.processId!}/stat`, 'utf8')).toMatch(/\) T /);
    let answered = false;
    const ping = database.command({ ping: 1 }).then(() => (answered = true));
    await new Promise((resolve) => setTimeout(resolve, 500));
    expect(answered).toBe(false);
    stack.mongodb.resume();
    await ping;
  });
});

test('two stacks side by side share neither addresses nor data, and stop without a trace', async () => {
  const stacks = await Promise.all([startStack({ environment }), startStack({ environment })]);
  const [first, second] = stacks;
  expect(first.mongodb.uri).not.toBe(second.mongodb.uri);
  expect(first.rocketmq.endpoints).not.toBe(second.rocketmq.endpoints);
  await client(first.mongodb.uri).db('side').collection('by').insertOne({ of: 'the first' });
  expect(await client(second.mongodb.uri).db('side').collection('by').countDocuments()).toBe(0);
  await first.rocketmq.createTopic({ name: 'only-in-the-first' });
  await expect(second.rocketmq.offsets({ topic: 'only-in-the-first' })).rejects.toThrow(/no topic/);

  const processes = stacks.flatMap(({ mongodb, rocketmq }) => [mongodb.processId!, rocketmq.processId!]);
  await Promise.all(stacks.map((stack) => stack.stop()));
  await expectGone(processes, 1_000);
  expect(stacks.map(({ dataFolder }) => existsSync(dataFolder))).toEqual([false, false]);
});

test('a data folder that was given is kept on stop, and serves the next start at other addresses', async () => {
  const dataFolder = temporaryFolder();
  const first = await startStack({ environment, dataFolder, topics: [{ name: 'kept' }] });
  await client(first.mongodb.uri).db('kept').collection('documents').insertOne({ kept: true });
  await expect(startStack({ environment, dataFolder })).rejects.toMatchObject({ code: 'NP_EMBEDDED_START_FAILED' });
  await sendAll({ endpoints: first.rocketmq.endpoints, topic: 'kept' }, ['kept']);
  await first.stop();

  const second = await startStack({ environment, dataFolder, groups: [{ name: 'reader', topics: ['kept'] }] });
  onTestFinished(() => second.stop());
  expect(await client(second.mongodb.uri).db('kept').collection('documents').countDocuments()).toBe(1);
  const offsets = await second.rocketmq.offsets({ topic: 'kept' });
  expect(offsets.reduce((sum, queue) => sum + queue.maxOffset, 0)).toBe(1);
});

test('a server that ends by itself is reported with the end of its log', async () => {
  const reported: Error[] = [];
  const mongodb = await startMongo({ environment, onUnexpectedExit: (error) => reported.push(error) });
  onTestFinished(() => mongodb.stop());
  process.kill(mongodb.processId!, 'SIGKILL');
  await expect.poll(() => reported.length, { timeout: 5_000 }).toBe(1);
  expect(reported[0]?.message).toMatch(/ended by itself \(SIGKILL\); the end of .*mongodb\.log/);
  expect(mongodb.processId).toBeUndefined();
});

test('a start that fails tells the end of the log, and leaves neither process nor folder', async () => {
  const proxySettings = { grpcServerPort: 99_999 };
  await expect(startStack({ environment, proxySettings })).rejects.toThrow(
    /RocketMQ on port \d+ ended with exit code[^]*port out of range/,
  );
  expect(ownFolders()).toEqual([]);
  await expectGone(descendants(process.pid), 5_000);
});

test('servers from the environment are used as they are, and not ended', async () => {
  const shared = sharedStack();
  const given = { ...process.env, MONGODB_URI: shared.mongodbUri, ROCKETMQ_ENDPOINTS: shared.rocketmqEndpoints };
  const stack = await startStack({ environment: given });
  expect(stack.mongodb).toMatchObject({ owned: false, uri: shared.mongodbUri, engine: shared.mongodbEngine });
  expect(stack.rocketmq).toMatchObject({ owned: false, endpoints: shared.rocketmqEndpoints });
  await expect(stack.mongodb.kill()).rejects.toMatchObject({ code: 'NP_EMBEDDED_NOT_OURS' });
  await expect(stack.rocketmq.createTopic({ name: 'x' })).rejects.toThrow(/NAMESRV_ADDR/);
  await stack.stop();
  await client(shared.mongodbUri).db('admin').command({ ping: 1 });
});

test('a RocketMQ from the environment takes topics and groups through its name server', async () => {
  const broker = await startRocketMq({ environment });
  onTestFinished(() => broker.stop());
  const { endpoints } = broker;
  const given = await startRocketMq({
    environment: { ...environment, ROCKETMQ_ENDPOINTS: endpoints, NAMESRV_ADDR: broker.nameServer },
    topics: [{ name: 'remote', queues: 2 }],
    groups: [{ name: 'remote-group', topics: ['remote'] }],
  });
  onTestFinished(() => given.stop());
  await sendAll({ endpoints, topic: 'remote' }, ['a', 'b']);
  const lag = async () =>
    (await given.offsets({ topic: 'remote', group: 'remote-group' })).reduce((sum, queue) => sum + queue.lag!, 0);
  expect(await lag()).toBe(2);
  expect(await receiveAll({ endpoints, topic: 'remote', group: 'remote-group', count: 2 })).toEqual(['a', 'b']);
  await given.rewind({ topic: 'remote', group: 'remote-group' });
  expect(await lag()).toBe(2);
});

test('servers that are not there are named with the variable that leads to them', async () => {
  const nowhere = {
    ...environment,
    MONGODB_URI: 'mongodb://127.0.0.1:1/?serverSelectionTimeoutMS=100',
    ROCKETMQ_ENDPOINTS: '127.0.0.1:1',
  };
  await expect(startMongo({ environment: nowhere })).rejects.toThrow(/^MONGODB_URI leads to no MongoDB that answers/);
  await expect(startRocketMq({ environment: nowhere })).rejects.toThrow(
    /^ROCKETMQ_ENDPOINTS is set, but nothing accepts connections there/,
  );
});
