import type { Consumer } from '@nightporter/consumer';
import { createAges, createGroupStats } from '@nightporter/mongo';
import type { ConfigOf, Tracing } from '@nightporter/runtime';
import type { MongoClient } from 'mongodb';
import type { Companion } from './companion.js';
import { createConsumerMetrics } from './metrics.js';
import type { ResolvedSubscription, WorkerSettings } from './settings.js';

interface Observed {
  readonly name: string;
  readonly config: ConfigOf<WorkerSettings>;
  readonly client: MongoClient;
  readonly subscriptions: readonly ResolvedSubscription[];
  readonly consumer: () => Consumer | null;
  readonly companion: () => Companion | null;
  readonly outage: () => string | null;
  /** Why the group's sweep of the ledger makes no progress; null where it does. */
  readonly sweep: () => string | null;
  readonly tracing: Tracing | null;
}

/** What a worker tells over HTTP, and what its metrics have to be told. */
export function observation(observed: Observed) {
  const { name, config, client, subscriptions, consumer, companion, outage, sweep, tracing } = observed;
  const { group, mongodbDatabase: database } = config;
  const checks = {
    database: async () => {
      await client.db(database).command({ ping: 1 });
      return null;
    },
    consumer: () => {
      const state = consumer()?.snapshot().state ?? null;
      if (state === null) return 'topic and group are being checked';
      return state === 'running' ? outage() : `is ${state}`;
    },
    ledger: sweep,
    companion: () => {
      const beside = companion();
      const reason = beside?.health() ?? null;
      return reason === null ? null : `${beside?.name ?? ''}: ${reason}`;
    },
  };
  // Where a producer is read over HTTP, its database and its clock are another cluster's.
  const own = subscriptions.filter(({ ledgerServer }) => ledgerServer === null);
  const producers = [...new Set(own.map(({ producerDatabase }) => producerDatabase))];
  const { metrics, ...recorders } = createConsumerMetrics({
    service: name,
    tracing,
    group,
    topics: subscriptions.map(({ topic }) => topic),
    producers,
    checks,
    snapshot: () => consumer()?.snapshot() ?? null,
    stats: createGroupStats({ client, database, group, producers }),
    ages: createAges(client),
    topicsOnOneClock: own.map(({ topic }) => topic),
    sloLatencyMs: config.sloLatencyMs,
  });
  const status = () => {
    const beside = companion();
    const snapshot = consumer()?.snapshot() ?? { state: 'preflight' };
    return beside === null ? snapshot : { ...snapshot, [beside.name]: beside.snapshot() };
  };
  return { ...recorders, served: { checks, metrics, status } };
}
