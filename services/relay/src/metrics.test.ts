import type { OutboxRow } from '@nightporter/contracts';
import { eventId } from '@nightporter/protocol';
import { PublishError, type RelayCounts, type RelayEvent, type RelaySnapshot } from '@nightporter/relay';
import { describe, expect, it } from 'vitest';
import { createRelayMetrics } from './metrics.js';

const NOW_MS = 1_000_000;
const row = (topic: string, id = '1'): OutboxRow => ({ topic, eventId: eventId(id) }) as OutboxRow;
const failed = (failure: PublishError['failure'], of: OutboxRow, cause?: Error): RelayEvent => ({
  kind: 'send-failed',
  row: of,
  error: new PublishError({ failure, answered: true, message: 'no' }, cause === undefined ? {} : { cause }),
  retryInMs: 5,
});
const published = (of: OutboxRow): RelayEvent => ({ kind: 'published', row: of, messageId: 'm', sendMs: 20 });

function relayMetrics(snapshot: () => RelaySnapshot | null = () => null) {
  const { metrics, observe } = createRelayMetrics({
    topics: ['orders'],
    checks: {},
    snapshot,
    ages: (momentMs, told) => {
      told(NOW_MS - momentMs);
    },
  });
  const read = async (name: string): Promise<readonly string[]> => {
    const { text } = await metrics.read();
    const lines = text.split('\n').filter((line) => line.startsWith(`${name}{`) && !line.endsWith(' 0'));
    return lines.map((line) => line.replace(/,service="relay"|service="relay",?/, ''));
  };
  return { observe, read };
}

const NOTHING_YET: RelayCounts = {
  captured: 0,
  claimed: 0,
  published: 0,
  attempts: 0,
  sendFailures: 0,
  markedPublished: 0,
  markedFailed: 0,
  markedDead: 0,
  refused: 0,
  missing: 0,
  sweeps: 0,
  repairs: 0,
  takeOvers: 0,
  fenced: 0,
  checkpointsSaved: 0,
  databaseFailures: 0,
};

const shard = {
  shard: 'all',
  state: 'following',
  epoch: 3,
  lagMs: 2_000,
  sinceCheckpointMs: 1_000,
  uncoveredForMs: null,
  paused: { all: false, topics: [] },
  topicsClosed: [],
  rowsInMemory: 0,
  sendsInFlight: 0,
  lanesHeld: 0,
  windowMax: 256,
  repairsByReason: { 'stream lost': 2 },
  counts: { ...NOTHING_YET, takeOvers: 1, markedDead: 4 },
} as unknown as RelaySnapshot['shards'][number];

const snapshot: RelaySnapshot = {
  owner: 'o',
  sharing: null,
  outbox: {
    ageMs: 500,
    isCapped: false,
    history: { kind: 'known', reachMs: 60_000 },
    unsettled: {
      PENDING: { rows: 7, oldestAgeMs: 1_500 },
      PROCESSING: { rows: 0, oldestAgeMs: null },
      FAILED: { rows: 0, oldestAgeMs: null },
      DEAD: { rows: 1, oldestAgeMs: 9_000 },
    },
  },
  shards: [shard],
};

describe('the metrics of the relay', () => {
  it('count sends by topic and by how they ended', async () => {
    const { observe, read } = relayMetrics();
    observe(published(row('orders')));
    observe(failed('transient', row('orders')));
    expect(await read('nightporter_relay_sends_total')).toEqual([
      'nightporter_relay_sends_total{topic="orders",outcome="published"} 1',
      'nightporter_relay_sends_total{topic="orders",outcome="transient"} 1',
    ]);
    expect(await read('nightporter_relay_send_duration_seconds_sum')).toEqual([
      'nightporter_relay_send_duration_seconds_sum{topic="orders"} 0.02',
    ]);
  });

  it('measure from the write of an event until the broker has it', async () => {
    const { observe, read } = relayMetrics();
    observe(published({ ...row('orders'), createdAtMs: NOW_MS - 250 }));
    observe(published(row('orders')));
    expect(await read('nightporter_outbox_publish_delay_seconds_sum')).toEqual([
      'nightporter_outbox_publish_delay_seconds_sum{topic="orders"} 0.25',
    ]);
  });

  it('make no label of a topic that is not configured', async () => {
    const { observe, read } = relayMetrics();
    observe(failed('topic', row('tenant-4711')));
    expect(await read('nightporter_relay_sends_total')).toEqual([
      'nightporter_relay_sends_total{topic="other",outcome="topic"} 1',
    ]);
  });

  it('count a send as a retry while an earlier one of its event has failed', async () => {
    const { observe, read } = relayMetrics();
    observe(failed('transient', row('orders')));
    observe(failed('transient', row('orders')));
    observe(published(row('orders', '2')));
    observe(published(row('orders')));
    observe(published(row('orders')));
    expect(await read('nightporter_relay_retries_total')).toEqual([
      'nightporter_relay_retries_total{topic="orders"} 2',
    ]);
  });

  it('tell a document of which no message can be made from one that the broker refuses', async () => {
    const { observe, read } = relayMetrics();
    observe(failed('permanent', row('orders', '1')));
    observe(failed('permanent', row('orders', '2'), new Error('refused by the broker')));
    expect(await read('nightporter_relay_decode_failures_total')).toEqual([
      'nightporter_relay_decode_failures_total{topic="orders"} 1',
    ]);
  });

  it('look everything else up in the snapshot', async () => {
    const { read } = relayMetrics(() => snapshot);
    expect(await read('nightporter_outbox_events')).toEqual([
      'nightporter_outbox_events{status="PENDING"} 7',
      'nightporter_outbox_events{status="DEAD"} 1',
    ]);
    expect(await read('nightporter_outbox_oldest_age_seconds')).toContain(
      'nightporter_outbox_oldest_age_seconds{status="PENDING"} 1.5',
    );
    expect(await read('nightporter_relay_shard_state')).toEqual([
      'nightporter_relay_shard_state{shard="all",state="following"} 1',
    ]);
    expect(await read('nightporter_relay_marks_total')).toEqual([
      'nightporter_relay_marks_total{shard="all",outcome="dead"} 4',
    ]);
    expect(await read('nightporter_relay_repairs_total')).toEqual([
      'nightporter_relay_repairs_total{shard="all",reason="stream lost"} 2',
    ]);
  });

  it('take what the oplog has left for the token from its reach, the age of the token and its lag', async () => {
    const { read } = relayMetrics(() => snapshot);
    expect(await read('nightporter_relay_oplog_headroom_seconds')).toEqual([
      'nightporter_relay_oplog_headroom_seconds{shard="all"} 57',
    ]);
  });

  it('say nothing of an outbox that they do not know any more', async () => {
    let now: RelaySnapshot = snapshot;
    const { read } = relayMetrics(() => now);
    await read('nightporter_outbox_events');
    now = { ...snapshot, outbox: null, shards: [] };
    expect(await read('nightporter_outbox_events')).toEqual([]);
  });
});
