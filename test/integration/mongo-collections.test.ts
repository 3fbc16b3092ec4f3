import {
  connectMongo,
  createRelayStores,
  engineOf,
  ensureConsumerCollections,
  ensureOutboxCollections,
  ensureRelayCollections,
  transactionLifetimeLimitMs,
} from '@nightporter/mongo';
import { namespace } from '@nightporter/protocol';
import { describe, expect, it } from 'vitest';
import { sharedDatabase } from '../conformance/mongo-database.js';
import { commitSamples, outboxDocument, outboxOf } from '../conformance/mongo-samples.js';
import { eventId } from '@nightporter/protocol';
import { sharedStack } from '../support/stack.js';

const shared = sharedDatabase();

describe('the collections', () => {
  it('may be ensured by many at once, and again', async () => {
    const name = shared.database('orders');
    const ensureAll = async (): Promise<void> => {
      await ensureOutboxCollections(shared.client(), name);
      await ensureRelayCollections(shared.client(), name);
      await ensureConsumerCollections(shared.client(), name);
    };
    await Promise.all([ensureAll(), ensureAll(), ensureAll()]);
    await ensureAll();
    const collections = await shared.client().db(name).listCollections({}, { nameOnly: true }).toArray();
    expect(collections.map((collection) => collection.name).sort()).toEqual(
      [
        ...['archive_files', 'groups', 'operator_actions', 'outbox', 'outbox_archive', 'outbox_heads'],
        ...[
          'relay_checkpoints',
          'relay_controls',
          'relay_doubted_indexes',
          'relay_instances',
          'relay_leases',
          'relay_repairs',
          'relay_shard_map',
        ],
        ...['dead_letter_copies', 'group_starts', 'inbox', 'parked', 'positions', 'started'],
      ].sort(),
    );
  });

  it('refuse two events at one version of an aggregate', async () => {
    const outbox = namespace(`${shared.database('orders')}.outbox`);
    const client = shared.client();
    await ensureOutboxCollections(client, outbox.split('.')[0]!);
    const identity = { source: 'orders', aggregateType: 'order', aggregateId: '1', eventKey: 'k', version: 1 };
    await outboxOf(client, outbox).insertOne(outboxDocument({ ...identity, id: eventId('one') }));
    const second = outboxOf(client, outbox).insertOne(outboxDocument({ ...identity, id: eventId('two') }));
    await expect(second).rejects.toMatchObject({ code: 11000 });
  });

  it('are refused with NP_CONFIG_INVALID, and the place named, where an index of the name is another', async () => {
    const name = shared.database('orders');
    await shared
      .client()
      .db(name)
      .collection('outbox')
      .createIndexes([{ key: { topic: 1 }, name: 'status_published' }]);
    await expect(ensureOutboxCollections(shared.client(), name)).rejects.toMatchObject({
      code: 'NP_CONFIG_INVALID',
      message: expect.stringContaining(`${name}.outbox`),
    });
  });

  it('stand in a namespace, and what is none is refused', () => {
    const client = shared.client();
    for (const wrong of ['orders', '.outbox', 'orders.']) {
      const create = () => createRelayStores({ client, database: 'relay', namespaces: [namespace(wrong)] });
      expect(create).toThrow(expect.objectContaining({ code: 'NP_CONFIG_INVALID' }));
    }
  });
});

describe('reading lanes', () => {
  it('finds the rows of an aggregate whose head is gone', async () => {
    const outbox = namespace(`${shared.database('orders')}.outbox`);
    const client = shared.client();
    const database = outbox.split('.')[0]!;
    await ensureOutboxCollections(client, database);
    const ids = await commitSamples(
      client,
      [1, 2].map(() => ({ namespace: outbox, aggregateId: 'a' })),
    );
    await client.db(database).collection('outbox_heads').deleteMany({});
    const { reader } = createRelayStores({ client, database: 'relay', namespaces: [outbox] });
    const rows = await reader.readLanes([{ namespace: outbox, aggregate: `${database}/sample/a` as never }], 10);
    expect(rows.map((row) => row.eventId)).toEqual(ids);
  });
});

describe('connecting', () => {
  it('tells which engine answers', async () => {
    expect((await engineOf(shared.client())).engine).toBe(sharedStack().mongodbEngine);
  });

  it('tells after how long it ends transactions, where it does', async () => {
    const isTold = sharedStack().mongodbEngine === 'MongoDB';
    expect(await transactionLifetimeLimitMs(shared.client())).toEqual(isTold ? expect.any(Number) : null);
  });

  it('says NP_STORE_UNAVAILABLE with the address, and no password, when nobody is there', async () => {
    const attempt = connectMongo({
      uri: 'mongodb://porter:secret@127.0.0.1:1/?directConnection=true',
      serverSelectionMs: 300,
    });
    const error = await attempt.then(
      () => null,
      (reason: unknown) => reason as Error,
    );
    expect(error).toMatchObject({ code: 'NP_STORE_UNAVAILABLE', message: expect.stringContaining('127.0.0.1:1') });
    expect(error?.message).not.toContain('secret');
  });
});
