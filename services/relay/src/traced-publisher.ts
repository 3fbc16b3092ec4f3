import { aggregateKey } from '@nightporter/protocol';
import type { Publisher, PublishRequest } from '@nightporter/relay';
import { messageGroupOf } from '@nightporter/rocketmq';
import { errorTypeOf, eventAttributes, messagingAttributes, type ActiveSpan, type Tracing } from '@nightporter/runtime';

/**
 * A span `send <topic>` for every send of an event, below what wrote the event. The message names the span, so that what a group does
 * with it stands below the very send that brought it. Each message is sent by itself, so no span stands for several.
 */
export function tracedPublisher(
  publisher: Publisher,
  { tracing, endpoints }: { readonly tracing: Tracing; readonly endpoints: string },
): Publisher {
  const server = serverOf(endpoints);
  return {
    publish: async (request) => {
      const span = sendSpanOf(request, { tracing, server });
      if (span === null) return publisher.publish(request);
      try {
        const publication = await publisher.publish({ ...request, traceparent: span.context.traceparent });
        span.set({ 'messaging.message.id': publication.messageId });
        return publication;
      } catch (error) {
        span.fail(errorTypeOf(error));
        throw error;
      } finally {
        span.end();
      }
    },
  };
}

interface Server {
  readonly address: string;
  readonly port: number;
}

/** Null for a document that somebody has written past `emit()` and that lacks what every row has: the publisher says what ails it. */
function sendSpanOf(
  request: PublishRequest,
  of: { readonly tracing: Tracing; readonly server: Server },
): ActiveSpan | null {
  try {
    return sendSpan(request, of);
  } catch {
    return null;
  }
}

function sendSpan(
  { row, epoch }: PublishRequest,
  { tracing, server }: { readonly tracing: Tracing; readonly server: Server },
): ActiveSpan {
  const { aggregateVersion, eventId, eventType, eventVersion, eventKey, headers, topic } = row;
  return tracing.start({
    name: `send ${topic}`,
    kind: 'producer',
    parent: headers,
    attributes: {
      ...messagingAttributes({ name: 'send', type: 'send', topic }),
      ...eventAttributes({
        eventId,
        eventType,
        eventVersion,
        aggregate: aggregateKey(row),
        aggregateVersion,
        correlationId: headers.correlationId,
        messageId: undefined,
        messageGroup: messageGroupOf(eventKey),
      }),
      'nightporter.form': row.form,
      'nightporter.relay.epoch': Number(epoch),
      'server.address': server.address,
      'server.port': server.port,
    },
  });
}

/** The first of the broker's addresses; which of them took a message is known to the client alone. */
function serverOf(endpoints: string): Server {
  const [first = ''] = endpoints.split(';');
  const colon = first.lastIndexOf(':');
  return { address: first.slice(0, colon), port: Number(first.slice(colon + 1)) };
}
