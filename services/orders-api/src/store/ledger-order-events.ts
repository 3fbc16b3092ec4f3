import {
  aggregateHistory,
  discoverDeployment,
  type AggregateHistory,
  type Deployment,
  type ProducerPlace,
} from '@nightporter/ledger';
import type { ArchiveFiles } from '@nightporter/mongo';
import { aggregateKey, isNightporterError } from '@nightporter/protocol';
import type { MongoClient } from 'mongodb';
import type { OrderEvents, OrderEventView } from '../order-events.js';

export interface LedgerOrderEventsOptions {
  readonly client: MongoClient;
  readonly database: string;
  readonly source: string;
  /** Where retention keeps archive files; without it their events are not told, and that is said. */
  readonly files?: ArchiveFiles | null;
}

/** Groups come and go seldom, and looking for their databases takes several requests. */
const DEPLOYMENT_LIFETIME_MS = 10_000;

/** {@link OrderEvents} from the ledger; the databases of the groups are looked for on the same deployment. */
export function createLedgerOrderEvents(options: LedgerOrderEventsOptions): OrderEvents {
  const { client, database, files = null, source } = options;
  const deployment = cachedDeployment({ client, database, ...(files === null ? {} : { files }) });
  return {
    read: async (orderId, page) => {
      const aggregate = aggregateKey({ source, aggregateType: 'order', aggregateId: orderId });
      const { entries, headVersion, next, notKnown } = await aggregateHistory(await deployment(), aggregate, page);
      return headVersion === 0 ? null : { events: entries.map(viewOf), next, notKnown };
    },
  };
}

function cachedDeployment(producer: ProducerPlace): () => Promise<Deployment> {
  let known: { readonly found: Deployment; readonly atMs: number } | null = null;
  return async () => {
    if (known !== null && performance.now() - known.atMs < DEPLOYMENT_LIFETIME_MS) return known.found;
    const found = await look(producer);
    known = { found, atMs: performance.now() };
    return found;
  };
}

/** A user who may not list databases still sees what is published: then the groups are named, and nothing is said about them. */
async function look(producer: ProducerPlace): Promise<Deployment> {
  const producers = [producer];
  try {
    return await discoverDeployment(producer.client, { producers, relay: null });
  } catch (error) {
    if (!isNightporterError(error, 'NP_STORE_UNAVAILABLE')) throw error;
    // Where the database is away altogether, the next request says so.
    return { producers, groups: [], relay: null };
  }
}

function viewOf({ version, event, groups }: AggregateHistory['entries'][number]): OrderEventView {
  if (event === null) return { version, event, groups };
  const { eventId, eventType, occurredAt, topic, status, publishedAt } = event;
  return {
    version,
    event: {
      ...{ eventId, eventType, topic, status },
      occurredAt: occurredAt.toISOString(),
      publishedAt: publishedAt?.toISOString() ?? null,
    },
    groups,
  };
}
