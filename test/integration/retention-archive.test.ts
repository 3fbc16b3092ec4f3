import type { OutboxDocument } from '@nightporter/contracts';
import { createProducerLedger, createRelayStores, type GroupDocument } from '@nightporter/mongo';
import { aggregateKey, type EventId } from '@nightporter/protocol';
import { describe, expect, it } from 'vitest';
import { sharedDatabase } from '../conformance/mongo-database.js';
import { DAY_MS, TOPIC, daysAgo, idsOf, retentionFixture, type RetentionFixture, walk } from './retention.support.js';

const shared = sharedDatabase();
const fixture = (): Promise<RetentionFixture> => retentionFixture(shared.client(), shared.database('archive'));
const collections = { kind: 'collections', bucket: 'day' } as const;

async function bucketsOf({ client, database }: RetentionFixture): Promise<ReadonlyMap<string, readonly EventId[]>> {
  const found = await client
    .db(database)
    .listCollections({ name: /^outbox_archive_/ }, { nameOnly: true })
    .toArray();
  const entries = found.map(async ({ name }) => {
    const documents = await client.db(database).collection<OutboxDocument>(name).find().toArray();
    return [name, idsOf(documents)] as const;
  });
  return new Map((await Promise.all(entries)).sort(([left], [right]) => (left < right ? -1 : 1)));
}

const bucketName = (days: number): string =>
  `outbox_archive_${daysAgo(days).toISOString().slice(0, 10).replaceAll('-', '_')}`;

describe('an archive of collections', () => {
  it('gets what leaves the outbox, each row once, whole, and in the bucket of its day', async () => {
    const own = await fixture();
    const [old, less] = [
      await own.publish([1, 2, 3].map((n) => ({ aggregateId: `a${n}`, daysAgo: 30 }))),
      await own.publish([1, 2].map((n) => ({ aggregateId: `a${n}`, daysAgo: 20 }))),
    ];
    const young = await own.publish([{ aggregateId: 'a1', daysAgo: 2 }]);
    await own.group('one', 1);
    expect(await own.retention({ destination: collections }).run()).toMatchObject({ rows: 5, batches: 2 });
    expect(await bucketsOf(own)).toEqual(
      new Map([
        [bucketName(30), idsOf(old)],
        [bucketName(20), idsOf(less)],
      ]),
    );
    expect(await own.left()).toEqual(idsOf(young));
    const kept = await own.client
      .db(own.database)
      .collection<OutboxDocument>(bucketName(30))
      .findOne({ _id: old[0]!._id });
    expect(kept).toEqual(old[0]);
    // Nothing is deleted for good.
    expect((await own.registry())?.deletedTo).toBeUndefined();
  });

  it('takes a row that it has already, so that what was restored or repeated does no harm', async () => {
    const own = await fixture();
    const [row, other] = await own.publish([1, 2].map((n) => ({ aggregateId: `a${n}`, daysAgo: 30 })));
    await own.group('one', 1);
    await own.client.db(own.database).collection<OutboxDocument>(bucketName(30)).insertOne(row!);
    expect(await own.retention({ destination: collections }).run()).toMatchObject({ rows: 2 });
    expect(await own.left()).toEqual([]);
    expect((await bucketsOf(own)).get(bucketName(30))).toEqual(idsOf([row!, other!]));
  });

  it('is read by the relay, which sends nothing of it again', async () => {
    const own = await fixture();
    const [row] = await own.publish([{ aggregateId: 'a', daysAgo: 30 }]);
    await own.group('one', 1);
    await own.retention({ destination: collections }).run();
    const { reader } = createRelayStores({ client: own.client, database: 'unused', namespaces: [own.outbox] });
    const found = await reader.lookUp([{ namespace: own.outbox, eventId: row!._id }]);
    expect(found.get(row!._id)).toBe('archived');
  });

  it('gives a group from the beginning every row in the order of publication, and each version', async () => {
    const own = await fixture();
    const days = [40, 30, 20, 12, 3];
    const documents = [];
    for (const daysBack of days) documents.push(...(await own.publish([{ aggregateId: 'a', daysAgo: daysBack }])));
    await own.group('one', 1);
    await own.retention({ destination: collections }).run();
    expect(await own.left()).toHaveLength(1);
    const ledger = createProducerLedger({ client: own.client, database: own.database });
    expect(await walk(ledger, 2)).toEqual(documents.map(({ _id }) => _id));
    const answers = await ledger.readVersions(
      documents.map((document) => ({ aggregate: aggregateKey(document), version: document.aggregateVersion })),
    );
    expect(
      answers.map((answer) => (answer.kind === 'published' ? answer.event.envelope.eventId : answer.kind)),
    ).toEqual(documents.map(({ _id }) => _id));
  });

  it('drops a bucket whole once it is old enough and every group of its topics has passed it', async () => {
    const own = await fixture();
    await own.publish([
      { aggregateId: 'a', daysAgo: 40 },
      { aggregateId: 'b', daysAgo: 40, topic: 'stock' },
      { aggregateId: 'a', daysAgo: 30 },
    ]);
    const [kept] = await own.publish([{ aggregateId: 'a', daysAgo: 20 }]);
    await own.group('one', 1, [TOPIC, 'stock']);
    await own.retention({ destination: collections }).run();
    const options = { destination: collections, archiveMs: 25 * DAY_MS };
    await own.group('behind', null, ['stock']);
    const held = await own.retention(options).run();
    expect(held.dropped).toEqual([{ name: bucketName(30), rows: 1 }]);
    expect(held.heldArchives).toMatchObject([{ name: bucketName(40), topic: 'stock', because: { group: 'behind' } }]);
    await watermark(own, 'behind', 1);
    const dropped = await own.retention(options).run();
    expect(dropped).toMatchObject({ dropped: [{ name: bucketName(40), rows: 2 }], heldArchives: [] });
    expect(await bucketsOf(own)).toEqual(new Map([[bucketName(20), idsOf([kept!])]]));
    const { deletedTo } = (await own.registry())!;
    expect(deletedTo?.[TOPIC]?.getTime()).toBeGreaterThanOrEqual(daysAgo(30).getTime());
    expect(deletedTo?.[TOPIC]?.getTime()).toBeLessThan(daysAgo(29).getTime());
  });

  it('explains a version as deleted once its bucket is gone', async () => {
    const own = await fixture();
    const [row] = await own.publish([{ aggregateId: 'a', daysAgo: 40 }]);
    await own.group('one', 1);
    await own.retention({ destination: collections, archiveMs: 25 * DAY_MS }).run();
    const ledger = createProducerLedger({ client: own.client, database: own.database });
    const place = { aggregate: aggregateKey(row!), version: row!.aggregateVersion };
    expect(await ledger.readVersions([place])).toEqual([{ kind: 'deleted' }]);
  });
});

async function watermark({ client, database }: RetentionFixture, name: string, days: number): Promise<void> {
  const groups = client.db(database).collection<GroupDocument>('groups');
  await groups.updateOne({ _id: name }, { $set: { watermark: daysAgo(days) } });
}
