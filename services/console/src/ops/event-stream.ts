import type { FastifyReply } from 'fastify';
import type { ServerResponse } from 'node:http';

/** Takes an answer over for server-sent events; it goes on until one side ends it. */
export function openEventStream(reply: FastifyReply): ServerResponse {
  reply.hijack();
  const { raw } = reply;
  raw.writeHead(200, {
    'content-type': 'text/event-stream; charset=utf-8',
    // Else the connection stays open behind the stream, and who closes the server waits for it.
    connection: 'close',
    'cache-control': 'no-store',
    'x-accel-buffering': 'no',
  });
  // Else whoever asks does not learn that he is heard until there is something to tell.
  raw.flushHeaders();
  return raw;
}

/** An outage is a message too: who looks shall not take old news for new ones. */
export function unavailableMessage(error: unknown): string {
  const reason = error instanceof Error ? error.message : String(error);
  return `event: unavailable\ndata: ${JSON.stringify({ reason })}\n\n`;
}
