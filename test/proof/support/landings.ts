import { decodeEnvelope, digestOf, MESSAGE_PROPERTIES } from '@nightporter/contracts';
import type { Delivery } from '@nightporter/consumer';
import type { QueueOffsets } from '@nightporter/embedded';
import { createSubscriber, type RocketmqSubscriber } from '@nightporter/rocketmq';
import type { LandingRecord } from '@nightporter/testing';
import type { ProofServers } from './servers.js';

/** What a topic holds, read by a plain subscriber that knows nothing of relay and outbox. */
export interface Landings {
  /** In the order of every queue, so in that of every aggregate. */
  readonly records: readonly LandingRecord[];
  /** Messages that the topic holds, repeats of one event included. */
  readonly messages: number;
}

/** A queue is handed out to one receive at a time, so these do not mix up its order. */
const LOOPS = 4;
const QUIET_LIMIT_MS = 30_000;

export interface ReadRequest {
  readonly topic: string;
  /** Created before anything was sent, with its position at the beginning. */
  readonly group: string;
}

/** Reads everything that the topic holds. Rejects when the broker brings nothing for 30 s although there is more. */
export async function readLandings(servers: ProofServers, request: ReadRequest): Promise<Landings> {
  const subscriber = await createSubscriber({ ...request, endpoints: servers.rocketmqEndpoints, waitMs: 500 });
  const records: LandingRecord[] = [];
  const state = { isDone: false, broughtAtMs: performance.now() };
  const loop = async (): Promise<void> => {
    while (!state.isDone) {
      const deliveries = await subscriber.receive({ max: 32, invisibleMs: 30_000 });
      records.push(...deliveries.map(landingIn));
      await subscriber.acknowledge(deliveries);
      if (deliveries.length > 0) state.broughtAtMs = performance.now();
      else if (await isAtEnd(servers, request)) state.isDone = true;
      else if (performance.now() - state.broughtAtMs > QUIET_LIMIT_MS) {
        throw new Error(`${request.topic} brought ${records.length} messages, and no more for ${QUIET_LIMIT_MS} ms`);
      }
    }
  };
  await runLoops(subscriber, loop);
  return { records, messages: messagesIn(await servers.offsets(request)) };
}

export function messagesIn(queues: readonly QueueOffsets[]): number {
  return queues.reduce((sum, { minOffset, maxOffset }) => sum + maxOffset - minOffset, 0);
}

async function runLoops(subscriber: RocketmqSubscriber, loop: () => Promise<void>): Promise<void> {
  try {
    await Promise.all(Array.from({ length: LOOPS }, loop));
  } finally {
    await subscriber.close();
  }
}

async function isAtEnd(servers: ProofServers, request: ReadRequest): Promise<boolean> {
  return (await servers.offsets(request)).every(({ lag }) => lag === 0);
}

function landingIn({ body, properties, messageId }: Delivery): LandingRecord {
  const decoded = decodeEnvelope(body);
  if (decoded.kind === 'unreadable') throw new Error(`message ${messageId}: ${decoded.reason}`);
  const form = properties[MESSAGE_PROPERTIES.form] === 'tombstone' ? 'tombstone' : 'original';
  return { eventId: decoded.envelope.eventId, form, digest: digestOf(decoded.envelope) };
}
