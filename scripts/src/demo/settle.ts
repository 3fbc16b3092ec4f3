import type { OutboxDocument } from '@nightporter/contracts';
import type { RocketMqAdmin } from '@nightporter/embedded';
import { CONSUMER_COLLECTIONS, OUTBOX_COLLECTIONS } from '@nightporter/mongo';
import type { MongoClient } from 'mongodb';
import { notificationCollections } from '@nightporter/notification-worker';
import { poll } from './poll.js';
import { PRODUCERS, registeredGroups, type Databases } from './shop.js';

export interface SettleOptions {
  readonly client: MongoClient;
  readonly databases: Databases;
  readonly limitMs: number;
  readonly signal: AbortSignal;
  readonly progress: (line: string) => void;
}

const REPORT_EVERY_MS = 2_000;

/**
 * Waits until every event of every outbox is published and settled in every group registered for its topic; false when the time is
 * over first. Settling may emit further events, so both are asked in one go, until nothing is missing.
 */
export async function waitUntilSettled(options: SettleOptions): Promise<boolean> {
  let reportAt = performance.now() + REPORT_EVERY_MS;
  const settled = await poll(
    async () => {
      const open = await countOpen(options);
      if (open.unpublished + open.unsettled + open.untold === 0) return true;
      if (performance.now() >= reportAt) {
        reportAt = performance.now() + REPORT_EVERY_MS;
        const { unpublished, unsettled, untold } = open;
        options.progress(
          `waiting: ${unpublished} events to publish, ${unsettled} to settle, ${untold} customers to tell`,
        );
      }
      return null;
    },
    { ...options, everyMs: 200 },
  );
  return settled ?? false;
}

interface Open {
  readonly unpublished: number;
  readonly unsettled: number;
  /** Notifications that have not been sent. */
  readonly untold: number;
}

async function countOpen({ client, databases }: SettleOptions): Promise<Open> {
  const outboxes = PRODUCERS.map((producer) =>
    client.db(databases[producer]).collection<OutboxDocument>(OUTBOX_COLLECTIONS.outbox),
  );
  const groups = await registeredGroups(client, databases);
  const unsettled = groups.map(async ({ group, topics }) => {
    const inbox = client.db(databases[group]).collection(CONSUMER_COLLECTIONS.inbox);
    const events = await Promise.all(outboxes.map((outbox) => outbox.countDocuments({ topic: { $in: [...topics] } })));
    return Math.max(0, sum(events) - (await inbox.countDocuments({ group })));
  });
  const unpublished = outboxes.map((outbox) => outbox.countDocuments({ unsettled: true }));
  const { notifications } = notificationCollections(client.db(databases.notification));
  return {
    unpublished: sum(await Promise.all(unpublished)),
    unsettled: sum(await Promise.all(unsettled)),
    untold: await notifications.countDocuments({ state: { $ne: 'sent' } }),
  };
}

export interface Redelivery {
  readonly broker: RocketMqAdmin;
  readonly topic: string;
  readonly group: string;
  readonly limitMs: number;
  readonly signal: AbortSignal;
}

/** How many messages of each queue the broker hands out once more. */
const REWIND_PER_QUEUE = 10;

/**
 * Moves the group back in every queue of its topic, as a broker does that has lost its offsets, and waits until the group has
 * acknowledged everything again. Returns how many messages were handed out once more; null when the time was over first.
 */
export async function provokeRedeliveries({
  broker,
  topic,
  group,
  limitMs,
  signal,
}: Redelivery): Promise<number | null> {
  // At the end of its topic, or what is still on its way would be counted as repeated.
  if ((await poll(() => atEnd(broker, { topic, group }), { limitMs, signal })) === null) return null;
  let repeated = 0;
  for (const { queueId, minOffset, maxOffset } of await broker.offsets({ topic, group })) {
    const offset = Math.max(minOffset, maxOffset - REWIND_PER_QUEUE);
    if (offset === maxOffset) continue;
    repeated += maxOffset - offset;
    await broker.rewind({ topic, group, queueId, offset });
  }
  const done = await poll(() => atEnd(broker, { topic, group }), { limitMs, signal });
  return done === null ? null : repeated;
}

async function atEnd(broker: RocketMqAdmin, request: { topic: string; group: string }): Promise<true | null> {
  const queues = await broker.offsets(request);
  return queues.every(({ lag, maxOffset, minOffset }) => (lag ?? maxOffset - minOffset) === 0) ? true : null;
}

function sum(counts: readonly number[]): number {
  return counts.reduce((total, count) => total + count, 0);
}
