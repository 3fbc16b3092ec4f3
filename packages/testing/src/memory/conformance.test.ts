import { namespace, resumeToken } from '@nightporter/protocol';
import {
  brokerConformance,
  captureConformance,
  checkpointStoreConformance,
  deadLetterCopiesConformance,
  gapFinderConformance,
  groupRegistryConformance,
  groupStoreConformance,
  instanceRegistryConformance,
  leaseStoreConformance,
  outboxActionsConformance,
  outboxMarkerConformance,
  outboxReaderConformance,
  parkedQueueConformance,
  outboxStatsConformance,
  pollingConformance,
  relayControlsConformance,
  producerLedgerConformance,
  repairLogConformance,
  repeatedEventsConformance,
  shardMapStoreConformance,
  startedRecordsConformance,
  uniqueId,
  type GapFixture,
  type LedgerFixture,
  type MarkerFixture,
  type PollingFixture,
  type SampleEvent,
  type StatsFixture,
} from '../conformance/index.js';
import { epoch, eventId } from '@nightporter/protocol';
import type { MemorySession } from './group-stores.js';
import { memoryGroupStores } from './group-stores.js';
import { MemoryGroup } from './group.js';
import { createMemoryWorld, type MemoryWorld } from './world.js';

const first = namespace('first.outbox');
const second = namespace('second.outbox');

leaseStoreConformance('the memory', () => {
  const world = createMemoryWorld();
  return Promise.resolve({ leases: world.relayStores().leases, passTime: (byMs) => world.clock.advance(byMs) });
});

instanceRegistryConformance('the memory', () => {
  const world = createMemoryWorld();
  return Promise.resolve({ instances: world.relayStores().instances, passTime: (byMs) => world.clock.advance(byMs) });
});

shardMapStoreConformance('the memory', () => {
  const world = createMemoryWorld();
  const { shardMaps, leases } = world.relayStores();
  return Promise.resolve({ shardMaps, leases, passTime: (byMs) => world.clock.advance(byMs) });
});

checkpointStoreConformance('the memory', () =>
  Promise.resolve({
    checkpoints: createMemoryWorld().relayStores().checkpoints,
    tokens: [resumeToken('one'), resumeToken('another')],
  }),
);

captureConformance('the memory', () => {
  const world = createMemoryWorld();
  // Nobody moves the clock here, so that whatever waits for it is let go on from the side.
  const timer = setInterval(() => void world.clock.advance(200), 2);
  timer.unref();
  return Promise.resolve({
    capture: world.relayStores().capture,
    unknownToken: resumeToken('never given'),
    commit: (events) => commit(world, events),
    dropFirstOutbox: () => {
      world.database.outbox.drop(first);
      return Promise.resolve();
    },
  });
});

outboxReaderConformance('the memory', () => Promise.resolve(outboxFixture()));
outboxActionsConformance('the memory', () => Promise.resolve(outboxFixture()));
outboxMarkerConformance('the memory', () => Promise.resolve(outboxFixture()));

repairLogConformance('the memory', () => {
  const { database, relayStores } = createMemoryWorld();
  return Promise.resolve({
    repairs: relayStores().repairs,
    recorded: () => Promise.resolve(database.repairs.records),
  });
});

outboxStatsConformance('the memory', () => Promise.resolve(outboxFixture()));
pollingConformance('the memory', () => Promise.resolve(outboxFixture()));

relayControlsConformance('the memory', () => {
  const { database, relayStores } = createMemoryWorld();
  return Promise.resolve({
    controls: relayStores().controls,
    pause: (topic) =>
      done(() => {
        database.controls.pause(topic);
      }),
    resume: (topic) =>
      done(() => {
        database.controls.resume(topic);
      }),
  });
});

groupStoreConformance('the memory', () => Promise.resolve(groupFixture()));
repeatedEventsConformance('the memory', () => {
  const world = createMemoryWorld();
  const inbox = world.group('group');
  return Promise.resolve({
    ...world.groupStores('group'),
    duplicatesOf: (event) =>
      Promise.resolve(inbox.inbox().find(({ eventId }) => eventId === event)?.duplicates ?? null),
  });
});

startedRecordsConformance('the memory', () => Promise.resolve(createMemoryWorld().groupStores('group')));
deadLetterCopiesConformance('the memory', () => {
  const world = createMemoryWorld();
  world.group('group').copiesDeadLetters = true;
  return Promise.resolve({ ...world.groupStores('group'), passTime: (byMs) => world.clock.advance(byMs) });
});
parkedQueueConformance('the memory', () => Promise.resolve(groupFixture()));
gapFinderConformance('the memory', () => Promise.resolve(groupFixture()));
producerLedgerConformance('the memory', ledgerFixture);

groupRegistryConformance('the memory', async () => {
  const world = createMemoryWorld();
  await world.clock.advance(1_000);
  const { groups } = world.database;
  groups.register('group', { topics: ['b-events', 'a-events'] });
  return {
    registry: world.producer('group').registry,
    unknown: world.producer('unknown').registry,
    floorMs: world.clock.now(),
    passTime: (byMs) => world.clock.advance(byMs),
  };
});

brokerConformance('the memory', () => {
  const world = createMemoryWorld();
  const timer = setInterval(() => void world.clock.advance(200), 2);
  timer.unref();
  return Promise.resolve({
    publisher: world.publisher(),
    topic: 'sample-events',
    subscribe: (group) => Promise.resolve(world.subscriber({ group, topic: 'sample-events' })),
    invisibleMsMin: 5_000,
    passTime: (byMs) => world.clock.advance(byMs),
  });
});

function outboxFixture(): MarkerFixture & PollingFixture & StatsFixture {
  const world = createMemoryWorld();
  const claimMs = 2_000;
  const { reader, marker, polling, stats } = world.relayStores({ relay: 'relay 1', claimMs });
  const { outbox } = world.database;
  return {
    reader,
    marker,
    polling,
    stats,
    claimMs,
    passTime: (byMs) => world.clock.advance(byMs),
    commit: (events) => commit(world, events),
    archive: (id) => done(() => outbox.retire(id, 'archive')),
    remove: (id) =>
      done(() => {
        outbox.deleteRow(id);
      }),
    actions: {
      retry: (request) => Promise.resolve(outbox.retryDead(request.eventId)),
      skip: (request) => Promise.resolve(outbox.skipDead(request.eventId)),
    },
    publicationOf: (row) => {
      const stored = outbox.find(row.eventId);
      return Promise.resolve({
        publishedAtMs: stored?.publishedAtMs ?? null,
        messageId: stored?.publication?.messageId ?? null,
        form: stored?.publication?.form ?? null,
      });
    },
  };
}

function commit(world: MemoryWorld, events: readonly SampleEvent[]): ReturnType<MarkerFixture['commit']> {
  const rows = world.database.outbox.commit(
    events.map(({ aggregateId, outbox }) => ({
      namespace: outbox === 'second' ? second : first,
      eventId: eventId(uniqueId('event')),
      source: 'conformance',
      aggregateType: 'sample',
      aggregateId,
      eventType: 'SampleHappened',
      topic: 'sample-events',
      payload: { text: 'é' },
      headers: { correlationId: 'story 1' },
    })),
  );
  return Promise.resolve(rows);
}

async function ledgerFixture(): Promise<LedgerFixture> {
  const world = createMemoryWorld();
  await world.clock.advance(1_000);
  const { marker } = world.relayStores();
  const { outbox } = world.database;
  return {
    ledger: world.producer('group').ledger,
    marker,
    topic: 'sample-events',
    commit: (events) => commit(world, events),
    async skip({ eventId, namespace, revision }) {
      const by = { relay: 'relay', epoch: epoch(1) };
      const failure = { ...by, status: 'DEAD', retryCount: 1, retryInMs: 0, error: 'refused' } as const;
      await marker.mark([{ kind: 'failed', namespace, eventId, revision, ...failure }]);
      outbox.skipDead(eventId);
    },
    retire: (row, how) => done(() => outbox.retire(row.eventId, how)),
    passTime: (byMs) => world.clock.advance(byMs),
  };
}

function groupFixture(): GapFixture<MemorySession> {
  const world = createMemoryWorld();
  const group = new MemoryGroup(() => world.clock.now());
  return {
    ...memoryGroupStores(group, world.network),
    passTime: (byMs) => world.clock.advance(byMs),
    writeDocument: (session, document, value) => session.write(document, value),
    readDocument: (document) => {
      const value = group.begin().readBusiness(document);
      return Promise.resolve(typeof value === 'string' ? value : null);
    },
  };
}

async function done(operation: () => unknown): Promise<void> {
  await Promise.resolve(operation());
}
