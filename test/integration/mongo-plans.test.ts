import {
  createGroupStores,
  createProducerLedger,
  createRelayStores,
  ensureConsumerCollections,
  ensureOutboxCollections,
} from '@nightporter/mongo';
import { aggregateKey, epoch, namespace, slotOf, type Namespace } from '@nightporter/protocol';
import { incomingEvent } from '@nightporter/testing/conformance';
import { MongoClient, type Document } from 'mongodb';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { sharedDatabase } from '../conformance/mongo-database.js';
import { commitSamples, databaseOf } from '../conformance/mongo-samples.js';
import { sharedStack } from '../support/stack.js';

const shared = sharedDatabase();

/** The servers differ in what they name a plan; none of ours may read a whole collection. */
describe('the plans of what runs all the time', () => {
  let client: MongoClient;
  let commands: { database: string; command: Document }[] = [];
  beforeAll(() => {
    client = new MongoClient(sharedStack().mongodbUri, { monitorCommands: true });
    client.on('commandStarted', ({ commandName, command, databaseName }) => {
      if (['find', 'update', 'distinct'].includes(commandName)) commands.push({ database: databaseName, command });
    });
  });
  afterAll(() => client.close());

  it('of the relay: sweeps, lanes, look-ups and marks', async () => {
    const outbox = await prepareOutbox();
    const rows = await commitSamples(shared.client(), samples(outbox, 40));
    const { reader, marker, polling } = createRelayStores({ client, database: 'unused', namespaces: [outbox] });
    const aggregate = { source: databaseOf(outbox), aggregateType: 'sample', aggregateId: 'a0' };
    const slot = slotOf(aggregateKey(aggregate));
    commands = [];
    const page = await reader.readUnsettled({ slot, after: null, limit: 3 });
    await reader.readUnsettled({ slot, after: page.at(-1)!, limit: 3 });
    await reader.readLanes([{ namespace: outbox, aggregate: aggregateKey(aggregate) }], 10);
    await reader.lookUp(page);
    expect(await polling.busySlots([slot])).toEqual([slot]);
    await polling.takeBack({ slots: [slot], relay: 'relay' });
    const target = { namespace: outbox, eventId: rows[0]!, relay: 'relay', epoch: epoch(1) };
    await marker.mark([
      { ...target, kind: 'published', messageId: 'm', topic: 't', form: 'original', sinceCaptureMs: 1 },
      { ...target, kind: 'unanswered', revision: 1 },
    ]);
    await expectNoScan(10);
  });

  it('of a group: what a batch loads, what is due, and what counts a duplicate', async () => {
    const database = shared.database('consumer');
    await ensureConsumerCollections(shared.client(), database);
    const { store, parked } = createGroupStores({ client, database, group: 'group' });
    const events = ['a', 'b', 'c'].map((aggregateId) => incomingEvent({ aggregateId, version: 1 }));
    const [event, duplicate, failed] = events;
    const failure = { code: 'NP_HANDLER_FAILED', message: 'no stock', stack: null };
    commands = [];
    await store.transact(async (transaction) => {
      await transaction.load(events);
      await transaction.save([
        { kind: 'settle', event: event!, outcome: 'applied', attempts: 1 },
        { kind: 'count-duplicate', eventId: duplicate!.envelope.eventId },
        { kind: 'park', event: failed!, state: 'retry', attempts: 1, retryInMs: 0, failure },
      ]);
    });
    const { aggregate, envelope } = failed!;
    await parked.behind([{ aggregate, version: envelope.aggregateVersion }], 4);
    await parked.giveBack(
      await parked.claimDue({ limit: 5, repeatedLimit: 5, togetherMax: 32, claimMs: 1_000, isAlone: true }),
    );
    await expectNoScan(9);
  });

  it('of the ledger sweep: a page of what was published, and single versions', async () => {
    const outbox = await prepareOutbox();
    const ids = await commitSamples(shared.client(), samples(outbox, 40));
    const { marker, reader } = createRelayStores({ client, database: 'unused', namespaces: [outbox] });
    const target = { namespace: outbox, relay: 'relay', epoch: epoch(1) };
    const publication = { kind: 'published', messageId: 'm', topic: 't', form: 'original', sinceCaptureMs: 1 } as const;
    await marker.mark(ids.map((eventId) => ({ ...target, ...publication, eventId })));
    const rows = await reader.lookUp(ids.slice(0, 2).map((eventId) => ({ eventId, namespace: outbox })));
    const ledger = createProducerLedger({ client, database: databaseOf(outbox) });
    commands = [];
    // A page that is full reads its last moment once more.
    const request = { topics: ['sample-events'], afterMs: 0, lagMs: -1_000, limit: 10, withArchive: false };
    expect((await ledger.readPublished(request)).rows.length).toBeGreaterThanOrEqual(10);
    const places = [...rows.values()].flatMap((row) =>
      typeof row === 'string' ? [] : [{ aggregate: aggregateKey(row), version: row.aggregateVersion }],
    );
    expect(await ledger.readVersions(places)).toHaveLength(2);
    await expectNoScan(5);
  });

  /** Statements by exact ids need no plan; all others must be served by an index. */
  async function expectNoScan(atLeast: number): Promise<void> {
    const seen = commands.flatMap(({ database, command }) => queriesOf(command).map((query) => ({ database, query })));
    expect(seen.length).toBeGreaterThanOrEqual(atLeast);
    for (const { database, query } of seen) {
      if (isByExactId(query['filter'] as Document)) continue;
      const plan = await shared.client().db(database).command({ explain: query, verbosity: 'queryPlanner' });
      expect(JSON.stringify(plan['queryPlanner']), JSON.stringify(query)).toContain('"IXSCAN"');
    }
  }
});

function isByExactId({ _id }: Document): boolean {
  return typeof _id === 'string' || (typeof _id === 'object' && Array.isArray((_id as { $in?: unknown }).$in));
}

/** A statement as something that every server explains: its selection. */
function queriesOf(command: Document): Document[] {
  if (typeof command['find'] === 'string') {
    const { find, filter, sort } = command as { find: string; filter: Document; sort?: Document };
    return [{ find, filter, ...(sort === undefined ? {} : { sort }) }];
  }
  if (typeof command['distinct'] === 'string')
    return [{ find: command['distinct'], filter: command['query'] as Document }];
  const updates = command['updates'] as { q: Document }[];
  return updates.map((update) => ({ find: command['update'] as string, filter: update.q }));
}

async function prepareOutbox(): Promise<Namespace> {
  const outbox = namespace(`${shared.database('orders')}.outbox`);
  await ensureOutboxCollections(shared.client(), databaseOf(outbox));
  return outbox;
}

function samples(outbox: Namespace, count: number): Parameters<typeof commitSamples>[1] {
  return Array.from({ length: count }, (_, index) => ({ namespace: outbox, aggregateId: `a${index % 4}` }));
}
