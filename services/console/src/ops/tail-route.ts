import { ProblemError } from '@nightporter/http';
import { followEvents, search, type EventFollower, type EventSummary, type SearchRequest } from '@nightporter/ledger';
import { createDatabaseClock } from '@nightporter/mongo';
import type { FastifyBaseLogger } from 'fastify';
import type { FastifyPluginCallbackZod } from 'fastify-type-provider-zod';
import type { ServerResponse } from 'node:http';
import { problem } from '../http/problems.js';
import { answers } from './answers.js';
import { openEventStream, unavailableMessage } from './event-stream.js';
import { follow } from './follow.js';
import type { Operations } from './operations.js';
import * as requests from './requests.js';

export interface TailOptions {
  readonly operations: Operations;
  /** How often each follower's events are looked for. */
  readonly everyMs: number;
}

/** Each has a search of its own. */
const FOLLOWING_MAX = 10;

/** Server-sent events with each event that is committed, once, from the request on. */
export const tailRoute: FastifyPluginCallbackZod<TailOptions> = (app, { everyMs, operations }, done) => {
  const following = new Map<ServerResponse, AbortController>();

  app.get(
    '/tail',
    {
      schema: {
        tags: ['questions'],
        summary: 'Events as they are committed, each once',
        querystring: requests.tailQuery,
        response: answers.tail,
      },
    },
    ({ log, query: { eventType, topic } }, reply) => {
      if (following.size >= FOLLOWING_MAX)
        throw new ProblemError(problem('unavailable', `${FOLLOWING_MAX} others follow events already`));
      const raw = openEventStream(reply);
      const controller = new AbortController();
      following.set(raw, controller);
      raw.once('close', () => {
        following.delete(raw);
        controller.abort();
      });
      const filter = {
        ...(eventType === undefined ? {} : { eventType }),
        ...(topic === undefined ? {} : { topic }),
      };
      void follow({ raw, signal: controller.signal, news: newsOf(operations, { filter, log }), everyMs });
    },
  );
  app.addHook('preClose', (closed) => {
    for (const [response, controller] of following) {
      controller.abort();
      response.end();
    }
    closed();
  });
  done();
};

/** What is new at each look, as messages. Never rejects. */
function newsOf(
  operations: Operations,
  { filter, log }: { readonly filter: Pick<SearchRequest, 'eventType' | 'topic'>; readonly log: FastifyBaseLogger },
): () => Promise<string> {
  const askedAtMs = performance.now();
  let follower: EventFollower | null = null;

  async function begin(): Promise<EventFollower> {
    await operations.deployment();
    const clock = createDatabaseClock(operations.client);
    const now = (): Promise<Date> => clock.read();
    // From when it was asked for, however long the first answer takes.
    const startedMs = (await now()).getTime() - (performance.now() - askedAtMs);
    return followEvents({
      startedMs,
      now,
      page: async (request) => search(await operations.deployment(), request),
      filter,
    });
  }

  return async () => {
    try {
      follower ??= await begin();
      const events = await follower.look();
      // A comment, so that whoever stands between does not take it for dead.
      return events.length === 0 ? ': nothing new\n\n' : events.map(messageOf).join('');
    } catch (error) {
      log.warn({ err: error }, 'events cannot be followed');
      return unavailableMessage(error);
    }
  };
}

function messageOf(event: EventSummary): string {
  return `event: committed\nid: ${event.eventId}\ndata: ${JSON.stringify(event)}\n\n`;
}
