import { createRelayStores, ensureOutboxCollections, ensureRelayCollections } from '@nightporter/mongo';
import { namespace } from '@nightporter/protocol';
import { createRelay, type Relay, type RelayOptions } from '@nightporter/relay';
import { systemClock } from '@nightporter/runtime';
import { eventually } from '@nightporter/testing/conformance';
import { describe, expect, it } from 'vitest';
import { sharedDatabase } from '../conformance/mongo-database.js';
import { commitSamples, databaseOf, outboxOf } from '../conformance/mongo-samples.js';

const shared = sharedDatabase();

describe('on the real protocol', () => {
  it('relays change between stream and polling while events are written: all are sent once and in order', async () => {
    const { outbox, start, sent, isAllPublished } = await setUp();
    const write = async (times: number): Promise<void> => {
      for (let index = 0; index < times; index += 1) {
        await commitSamples(
          shared.client(),
          ['a', 'b', 'a'].map((aggregateId) => ({ namespace: outbox, aggregateId })),
        );
      }
    };
    let current = start('relay-0', { capture: 'stream' });
    await write(5);
    for (const [index, capture] of (['polling', 'stream', 'polling'] as const).entries()) {
      const next = start(`relay-${index + 1}`, { capture });
      await write(3);
      await Promise.all([current.stop(), write(4)]);
      current = next;
    }
    await eventually(isAllPublished, 30_000, 'all are published');
    await current.stop();
    const rows = await outboxOf(shared.client(), outbox).find().toArray();
    expect(rows).toHaveLength(26 * 3);
    for (const id of ['a', 'b']) {
      const versions = sent.filter((row) => row.aggregateId === id).map((row) => row.aggregateVersion);
      expect(versions).toEqual(versions.map((_, index) => index + 1));
    }
    expect(sent).toHaveLength(26 * 3);
  });

  it('two instances that poll share the slots out, and claim every row once', async () => {
    const { outbox, start, sent, isAllPublished } = await setUp();
    const halves = [0, 1].map((half) => Array.from({ length: 32 }, (_, index) => (half * 32 + index) as never));
    const samples = Array.from({ length: 60 }, (_, index) => ({ namespace: outbox, aggregateId: `a${index % 20}` }));
    await commitSamples(shared.client(), samples);
    const relays = halves.map((slots, half) =>
      start(`relay-${half}`, { capture: 'polling', shards: [{ id: `half-${half}`, slots }] }),
    );
    await eventually(isAllPublished, 30_000, 'all are published');
    for (const relay of relays) await relay.stop();
    expect(sent).toHaveLength(60);
    expect(new Set(sent.map((row) => row.eventId)).size).toBe(60);
    const rows = await outboxOf(shared.client(), outbox).find().toArray();
    expect(new Set(rows.map((row) => row.claim?.relay))).toEqual(new Set(['relay-0', 'relay-1']));
    expect(new Set(rows.map((row) => row.revision))).toEqual(new Set([3]));
  });

  async function setUp() {
    const client = shared.client();
    const outbox = namespace(`${shared.database('orders')}.outbox`);
    const database = shared.database('relay');
    await ensureOutboxCollections(client, databaseOf(outbox));
    await ensureRelayCollections(client, database);
    const sent: { eventId: string; aggregateId: string; aggregateVersion: number }[] = [];
    const start = (owner: string, options: Partial<RelayOptions>): Relay => {
      const relay = createRelay(
        {
          ...createRelayStores({ client, database, namespaces: [outbox], owner }),
          publisher: {
            publish({ row }) {
              sent.push(row);
              return Promise.resolve({ messageId: `message ${sent.length}` });
            },
          },
          clock: systemClock,
          random: Math.random,
          observe: () => undefined,
        },
        { owner, pollEveryMs: 100, standbyEveryMs: 100, ...options },
      );
      void relay.run();
      return relay;
    };
    const isAllPublished = async (): Promise<boolean> =>
      (await outboxOf(client, outbox).countDocuments({ status: { $ne: 'PUBLISHED' } })) === 0;
    return { outbox, start, sent, isAllPublished };
  }
});
