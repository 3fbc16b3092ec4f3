import { status } from '@nightporter/ledger';
import type { FastifyInstance, FastifyPluginCallback } from 'fastify';
import type { ServerResponse } from 'node:http';
import { ProblemError } from '@nightporter/http';
import { problem } from '../http/problems.js';
import { answers } from './answers.js';
import { openEventStream, unavailableMessage } from './event-stream.js';
import type { Operations } from './operations.js';

export interface LiveOptions {
  readonly operations: Operations;
  /** How often the figures are read, once for all who look. */
  readonly everyMs: number;
}

const LOOKING_MAX = 50;

/**
 * Server-sent events with how everything stands. The figures are read only while somebody looks, and once for all of them; who reads too slowly
 * to take them is left out, and gets the next ones.
 */
export const liveRoute: FastifyPluginCallback<LiveOptions> = (app, { everyMs, operations }, done) => {
  const looking = new Set<ServerResponse>();
  let timer: NodeJS.Timeout | null = null;

  async function tell(): Promise<void> {
    const message = await read(app, operations);
    for (const response of looking) if (!response.writableEnded && !response.writableNeedDrain) response.write(message);
    timer = looking.size === 0 ? null : setTimeout(() => void tell(), everyMs);
  }

  app.get(
    '/live',
    { schema: { tags: ['questions'], summary: 'The same as /status, again and again', response: answers.live } },
    (_request, reply) => {
      if (looking.size >= LOOKING_MAX) {
        throw new ProblemError(problem('unavailable', `${LOOKING_MAX} others look already`));
      }
      const raw = openEventStream(reply);
      looking.add(raw);
      raw.once('close', () => looking.delete(raw));
      if (timer === null) timer = setTimeout(() => void tell(), 0);
    },
  );
  app.addHook('preClose', (closed) => {
    if (timer !== null) clearTimeout(timer);
    for (const response of looking) response.end();
    closed();
  });
  done();
};

async function read(app: FastifyInstance, operations: Operations): Promise<string> {
  try {
    const found = await status(await operations.deployment(), operations.client);
    return `event: status\ndata: ${JSON.stringify(found)}\n\n`;
  } catch (error) {
    app.log.warn({ err: error }, 'the figures cannot be read');
    return unavailableMessage(error);
  }
}
