import { checkHistory, type History } from '../checker/index.js';
import type { Cluster } from './cluster.js';
import { deadLetterTopic } from './layout.js';

/** The history so far, as the checker wants it. */
export function historyOf(cluster: Cluster): History {
  const { assertions, database, groups } = cluster;
  return {
    atRest: true,
    committed: assertions.committed.map((row) => ({
      eventId: row.eventId,
      aggregate: row.aggregate,
      version: row.aggregateVersion,
      digest: row.digest,
      topic: row.topic,
    })),
    landings: assertions.landings,
    unpublished: database.outbox.rows().filter((row) => row.status !== 'PUBLISHED'),
    groups: groups.map(({ name, topics, memory }) => {
      const watch = assertions.group(name);
      return {
        group: name,
        topics,
        startVersions: Object.fromEntries(watch.startVersions),
        effects: watch.effects.map((eventId) => ({ eventId })),
        settled: [...watch.settled].map(([eventId, outcome]) => ({ eventId, outcome })),
        parked: memory.parked().map(({ event, state }) => ({ eventId: event.envelope.eventId, state })),
      };
    }),
  };
}

/** What still keeps a history from being at rest, or will for ever. */
export function unrestOf(cluster: Cluster): readonly { rule: string; detail: string }[] {
  const unrest = checkHistory(historyOf(cluster)).map(({ kind, group, eventId, detail }) => ({
    rule: `history: ${kind}`,
    detail: `${group ?? 'relay'}: ${eventId}: ${detail}`,
  }));
  const { knobs, database, broker, groups } = cluster;
  if (knobs.resolveAll) {
    for (const row of database.outbox.rows()) {
      if (row.status === 'DEAD') unrest.push({ rule: 'operators resolve all', detail: `${row.eventId} is DEAD` });
    }
  }
  for (const { name, topics, memory } of groups) {
    const letters = memory.parked().filter((row) => row.state === 'dead');
    if (knobs.resolveAll) {
      for (const { event } of letters) {
        unrest.push({ rule: 'operators resolve all', detail: `${name}: ${event.envelope.eventId} is a dead letter` });
      }
    }
    for (const topic of [...topics, deadLetterTopic(name)]) {
      const backlog = broker.topic(topic).backlogOf(name);
      if (backlog > 0) unrest.push({ rule: 'everything is acknowledged', detail: `${name} ${topic}: ${backlog} left` });
    }
  }
  return [...unrest, ...unfairShares(cluster)];
}

/** Once nobody joins and leaves, every shard is held, and nobody holds two more than another. */
function unfairShares({ knobs, database, schedule, shards }: Cluster): readonly { rule: string; detail: string }[] {
  if (!knobs.sharing) return [];
  const owners = shards
    .map(({ id }) => database.leases.documents.get(id))
    .filter((lease) => (lease?.expiresAtMs ?? 0) > schedule.nowMs)
    .map((lease) => lease?.owner ?? '');
  const counts = [...new Set(owners)].map((owner) => owners.filter((other) => other === owner).length).sort();
  const isFair = counts.join(' ') === '1 1 2';
  return isFair
    ? []
    : [{ rule: 'shares are fair', detail: `${shards.length} shards are held as ${counts.join(', ')}` }];
}
