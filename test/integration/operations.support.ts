import { createCatalogue, defineEvent, type OutboxDocument } from '@nightporter/contracts';
import type { Deployment } from '@nightporter/ledger';
import {
  createGroupStores,
  createLedgerRows,
  createProducerLedger,
  createRelayStores,
  ensureConsumerCollections,
  ensureOutboxCollections,
  ensureRelayCollections,
  registerGroup,
  type GroupDocument,
  type GroupStores,
} from '@nightporter/mongo';
import { createOutbox } from '@nightporter/outbox';
import { aggregateKey, epoch, namespace, type AggregateKey, type EventId, type Namespace } from '@nightporter/protocol';
import type { MongoClient } from 'mongodb';
import { z } from 'zod';
import type { SharedDatabase } from '../conformance/mongo-database.js';

type GroupTransaction = Parameters<Parameters<GroupStores['store']['transact']>[0]>[0];
type GroupChange = Parameters<GroupTransaction['save']>[0][number];
type IncomingEvent = Extract<GroupChange, { readonly kind: 'settle' }>['event'];

export const OPERATIONS_TOPIC = 'sample-events';
const SOURCE = 'operations-tests';

/** An outbox, a relay's database and a group, written by the adapters that relay and workers write with, one step at a time. */
export interface OperationsFixture {
  readonly client: MongoClient;
  readonly producer: string;
  readonly consumer: string;
  readonly relayDatabase: string;
  readonly group: string;
  readonly outbox: Namespace;
  readonly deployment: Deployment;
  key(aggregateId: string): AggregateKey;
  /** Commits events of one aggregate, a transaction each. */
  commit(
    aggregateId: string,
    count: number,
    headers?: { tenantId?: string; correlationId?: string },
  ): Promise<readonly EventId[]>;
  publish(ids: readonly EventId[]): Promise<void>;
  /** The relay gives up sending the event. */
  kill(id: EventId): Promise<void>;
  /** The group applies published events, each at the next version of its aggregate. */
  settle(ids: readonly EventId[]): Promise<void>;
  park(id: EventId, state: 'gap' | 'behind' | 'retry' | 'dead'): Promise<void>;
  /** Says that the group has compared everything that is published by now. */
  sweep(): Promise<void>;
  /** A relay that holds the lease. */
  lease(): Promise<void>;
}

/** In databases of its own. */
export async function operationsFixture(shared: SharedDatabase): Promise<OperationsFixture> {
  const client = shared.client();
  const [producer, consumer] = [shared.database('producer'), shared.database('consumer')];
  const relayDatabase = shared.database('relay');
  const group = `readers-of-${producer}`;
  await ensureOutboxCollections(client, producer);
  await ensureConsumerCollections(client, consumer);
  await ensureRelayCollections(client, relayDatabase);
  await registerGroup(client, producer, { group, topics: [OPERATIONS_TOPIC] });
  const schema = z.strictObject({ value: z.number() });
  const sample = defineEvent({
    type: 'SampleHappened',
    version: 1,
    aggregateType: 'sample',
    topic: OPERATIONS_TOPIC,
    schema,
  });
  const catalogue = createCatalogue([sample]);
  const writer = createOutbox({ client, database: producer, source: SOURCE, catalogue });
  const outbox = namespace(`${producer}.outbox`);
  const relay = createRelayStores({ client, database: relayDatabase, namespaces: [outbox] });
  const { store } = createGroupStores({ client, database: consumer, group });
  const key = (aggregateId: string): AggregateKey =>
    aggregateKey({ source: SOURCE, aggregateType: 'sample', aggregateId });
  const target = { namespace: outbox, relay: 'relay-a', epoch: epoch(3) };
  const groups = client.db(producer).collection<GroupDocument>('groups');
  return {
    client,
    producer,
    consumer,
    relayDatabase,
    group,
    outbox,
    key,
    deployment: {
      producers: [{ client, database: producer }],
      groups: [{ client, database: consumer, group }],
      relay: { client, database: relayDatabase },
    },
    async commit(aggregateId, count, headers = {}) {
      const ids: EventId[] = [];
      for (let value = 1; value <= count; value += 1) {
        await writer.transaction(async ({ emit }) => {
          const event = {
            aggregateType: 'sample',
            aggregateId,
            eventType: 'SampleHappened',
            payload: { value },
            headers,
          };
          ids.push((await emit(event)).eventId);
        });
      }
      return ids;
    },
    async publish(ids) {
      const marks = ids.map((eventId) => ({
        ...target,
        eventId,
        kind: 'published' as const,
        messageId: `message-${eventId}`,
        topic: OPERATIONS_TOPIC,
        form: 'original' as const,
        sinceCaptureMs: 5,
      }));
      await relay.marker.mark(marks);
    },
    async kill(eventId) {
      const failed = {
        kind: 'failed',
        status: 'DEAD',
        retryCount: 4,
        retryInMs: 0,
        error: 'the broker found it illegal',
      } as const;
      await relay.marker.mark([{ ...target, eventId, revision: 1, ...failed }]);
    },
    async settle(ids) {
      for (const id of ids) {
        const event = await incoming({ client, producer, id });
        const position = { version: event.envelope.aggregateVersion, startVersion: 0, state: 'open' as const };
        await store.transact((transaction) =>
          transaction.save([
            { kind: 'settle', event, outcome: 'applied', attempts: 1 },
            { kind: 'position', aggregate: event.aggregate, position },
            { kind: 'unpark', aggregate: event.aggregate, version: event.envelope.aggregateVersion },
          ]),
        );
      }
    },
    async park(id, state) {
      const event = await incoming({ client, producer, id });
      const { aggregate, envelope } = event;
      const failure = { code: 'NP_HANDLER_FAILED', message: 'no such product', stack: null };
      const hasFailed = state === 'retry' || state === 'dead';
      await store.transact(async (transaction) => {
        const { positions } = await transaction.load([{ aggregate, envelope }]);
        const { version = 0, startVersion = 0 } = positions.get(aggregate) ?? {};
        const isNext = version + 1 === (envelope.aggregateVersion as number);
        const standing = positions.get(aggregate)?.state ?? 'open';
        await transaction.save([
          {
            kind: 'park',
            event,
            state,
            attempts: hasFailed ? 2 : 0,
            retryInMs: state === 'retry' ? 60_000 : null,
            failure: hasFailed ? failure : null,
          },
          { kind: 'position', aggregate, position: { version, startVersion, state: isNext ? 'blocked' : standing } },
        ]);
      });
    },
    async sweep() {
      await groups.updateOne({ _id: group }, [{ $set: { watermark: { $add: ['$$NOW', 1] }, state: 'live' } }]);
    },
    async lease() {
      await relay.leases.acquire({ shard: 'all', owner: 'relay-a', durationMs: 60_000 });
    },
  };
}

/** As the message of a published row reaches a worker. */
async function incoming({
  client,
  id,
  producer,
}: {
  client: MongoClient;
  producer: string;
  id: EventId;
}): Promise<IncomingEvent> {
  const row = await createLedgerRows({ client, database: producer }).findEvent(id);
  if (row?.kind !== 'row') throw new Error(`event ${id} is not in the ledger`);
  const place = { aggregate: aggregateKey(row.document), version: row.document.aggregateVersion };
  const [answer] = await createProducerLedger({ client, database: producer }).readVersions([place]);
  if (answer?.kind !== 'published') throw new Error(`event ${id} is ${answer?.kind ?? 'nowhere'}`);
  return answer.event;
}

export function rowsOf(fixture: OperationsFixture) {
  return fixture.client.db(fixture.producer).collection<OutboxDocument>('outbox');
}
