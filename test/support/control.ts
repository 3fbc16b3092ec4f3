import { once } from 'node:events';
import { createServer, request, type IncomingMessage } from 'node:http';
import type { GroupRequest, QueueOffsets, RewindRequest, RocketMqAdmin, TopicRequest } from '@nightporter/embedded';

const ANSWER_LIMIT_MS = 30_000;

/** The broker's administration, offered to the processes that run the tests. One operation is one path. */
export interface ControlServer {
  close(): Promise<void>;
}

type Operations = Record<string, (body: never) => Promise<unknown>>;

/** Serves the operations on a Unix socket, since the stack's owner is another process than the tests. */
export async function serveControl({
  socketPath,
  admin,
}: {
  socketPath: string;
  admin: RocketMqAdmin;
}): Promise<ControlServer> {
  const operations: Operations = {
    createTopic: (body: TopicRequest) => admin.createTopic(body),
    createGroup: (body: GroupRequest) => admin.createGroup(body),
    offsets: (body: { topic: string; group?: string }) => admin.offsets(body),
    rewind: (body: RewindRequest) => admin.rewind(body),
  };
  const server = createServer((incoming, response) => {
    answer(operations, incoming).then(
      (result) => response.end(JSON.stringify({ result })),
      (error: unknown) => response.end(JSON.stringify({ error: String(error) })),
    );
  });
  server.listen(socketPath);
  await once(server, 'listening');
  return {
    close: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

/** The same operations from a test's process. */
export function controlClient(socketPath: string): RocketMqAdmin {
  const ask = (operation: string, body: unknown) => post({ socketPath, operation, body: JSON.stringify(body) });
  return {
    createTopic: async (topic) => {
      await ask('createTopic', topic);
    },
    createGroup: async (group) => {
      await ask('createGroup', group);
    },
    offsets: async (query) => (await ask('offsets', query)) as QueueOffsets[],
    rewind: async (rewind) => {
      await ask('rewind', rewind);
    },
  };
}

async function answer(operations: Operations, incoming: IncomingMessage): Promise<unknown> {
  const operation = operations[incoming.url?.slice(1) ?? ''];
  if (operation === undefined) throw new Error(`no operation at ${incoming.url ?? 'no path'}`);
  return operation(JSON.parse(await textOf(incoming)) as never);
}

async function post(call: { socketPath: string; operation: string; body: string }): Promise<unknown> {
  const outgoing = request({
    socketPath: call.socketPath,
    path: `/${call.operation}`,
    method: 'POST',
    signal: AbortSignal.timeout(ANSWER_LIMIT_MS),
  });
  outgoing.end(call.body);
  const [response] = (await once(outgoing, 'response')) as [IncomingMessage];
  const { result, error } = JSON.parse(await textOf(response)) as { result?: unknown; error?: string };
  if (error !== undefined) throw new Error(error);
  return result;
}

async function textOf(stream: IncomingMessage): Promise<string> {
  let text = '';
  for await (const chunk of stream.setEncoding('utf8')) text += chunk as string;
  return text;
}
