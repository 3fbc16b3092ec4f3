import type { ConsumerEvent, ConsumerSnapshot, IncomingEvent, ParkedFailure } from '@nightporter/consumer';
import type { GroupFigures } from '@nightporter/mongo';
import { describe, expect, it } from 'vitest';
import { createConsumerMetrics } from './metrics.js';

const NOW_MS = 1_000_000;
const none = { rows: 0, oldestAgeMs: null };
const FIGURES: GroupFigures = {
  waiting: {
    gap: none,
    behind: none,
    retry: { rows: 2, oldestAgeMs: 30_000 },
    dead: { rows: 1, oldestAgeMs: 60_000 },
    aside: none,
  },
  isCapped: false,
  standings: [{ producer: 'orders', state: 'live', watermarkAgeMs: 12_000, registeredAtMs: NOW_MS - 60_000 }],
};

const snapshot: ConsumerSnapshot = {
  received: 5,
  redelivered: 0,
  applied: 0,
  ignored: 0,
  skipped: 0,
  duplicates: 1,
  beforeStart: 0,
  advanced: 0,
  leftToLedger: 0,
  parked: { gap: 3, behind: 0, retry: 0, dead: 0 },
  setAside: 0,
  filterConfirmed: 0,
  filterRefuted: 0,
  filterFailures: 0,
  handlerFailures: 0,
  conflicts: 0,
  woken: 0,
  ledgerSeen: 0,
  ledgerMissing: 0,
  brokerDeadLetters: 0,
  deadLettersCopied: 0,
  copyFailures: 0,
  bootstrap: null,
  versionsUnavailable: 0,
  ledgerFailures: 0,
  acknowledged: 0,
  databaseFailures: 0,
  brokerFailures: 0,
  batchesInHand: 0,
  claimsInHand: 0,
  paused: true,
  state: 'running',
};

function consumerMetrics(stats: () => Promise<GroupFigures> = () => Promise.resolve(FIGURES)) {
  const { metrics, observe, handlerRan, registered } = createConsumerMetrics({
    service: 'test',
    group: 'g',
    topics: ['orders-events'],
    producers: ['orders', 'stock'],
    checks: {},
    snapshot: () => snapshot,
    stats: { read: stats },
    ages: (momentMs, told) => {
      told(NOW_MS - momentMs);
    },
    sloLatencyMs: 700,
    topicsOnOneClock: ['orders-events'],
  });
  const read = async (name: string, { zeros = false } = {}): Promise<readonly string[]> => {
    const { text } = await metrics.read();
    const lines = text.split('\n').filter((line) => line.startsWith(`${name}{`) && (zeros || !line.endsWith(' 0')));
    return lines.map((line) =>
      line
        .slice(name.length)
        .replace(/,?(group="g"|service="test")/g, '')
        .replace('{,', '{'),
    );
  };
  return { observe, handlerRan, registered, read };
}

const event = (topic: string) => ({ topic }) as IncomingEvent;
const failure: ParkedFailure = { code: 'NP_HANDLER_FAILED', message: 'no', stack: null };
const parked = (state: 'gap' | 'retry' | 'dead', reason: ParkedFailure | null): ConsumerEvent => ({
  kind: 'parked',
  event: event('orders-events'),
  state,
  failure: reason,
});

describe('the metrics of a consumer group', () => {
  it('count what was settled by topic and outcome, and make no label of a foreign topic', async () => {
    const { observe, read } = consumerMetrics();
    observe({ kind: 'settled', event: event('orders-events'), outcome: 'applied', attempt: 1 });
    observe({ kind: 'settled', event: event('of-somebody'), outcome: 'ignored', attempt: 1 });
    expect(await read('nightporter_consumer_settled_total')).toEqual([
      '{topic="orders-events",outcome="applied"} 1',
      '{topic="other",outcome="ignored"} 1',
    ]);
  });

  it('count failures and dead letters by code, and no event that only waits for others', async () => {
    const { observe, read } = consumerMetrics();
    observe(parked('gap', null));
    observe(parked('retry', failure));
    observe(parked('dead', failure));
    expect(await read('nightporter_consumer_failures_total')).toEqual(['{code="NP_HANDLER_FAILED"} 2']);
    expect(await read('nightporter_consumer_dead_letters_total')).toEqual(['{code="NP_HANDLER_FAILED"} 1']);
  });

  it('measure handlers by event type', async () => {
    const { handlerRan, read } = consumerMetrics();
    handlerRan({ eventType: 'OrderPaid', outcome: 'completed', durationMs: 40 });
    expect(await read('nightporter_consumer_handler_duration_seconds_sum')).toEqual([
      '{event_type="OrderPaid",outcome="completed"} 0.04',
    ]);
  });

  it('measure from the write of an event until it is settled, and not what was written before the group came', async () => {
    const { observe, read, registered } = consumerMetrics();
    const settled = (ageMs: number): ConsumerEvent => ({
      kind: 'settled',
      event: { ...event('orders-events'), createdAtMs: NOW_MS - ageMs },
      outcome: 'applied',
      attempt: 1,
    });
    observe(settled(1));
    await registered();
    for (const ageMs of [700, 701, 60_000, 60_001]) observe(settled(ageMs));
    observe({ ...settled(1), event: { ...event('of-another-cluster'), createdAtMs: NOW_MS } } as ConsumerEvent);
    expect(await read('nightporter_consumer_slo_events_total')).toEqual(['{within="true"} 1', '{within="false"} 2']);
    const buckets = await read('nightporter_consumer_end_to_end_latency_seconds_bucket', { zeros: true });
    expect(buckets).toContain('{le="0.7"} 1');
    expect(buckets).toContain('{le="60"} 3');
    expect(buckets).toContain('{le="+Inf"} 3');
  });

  it('take the engine’s own counts over', async () => {
    const { read } = consumerMetrics();
    expect(await read('nightporter_consumer_received_total')).toHaveLength(1);
    expect(await read('nightporter_consumer_parkings_total')).toEqual(['{state="gap"} 3']);
    expect(await read('nightporter_consumer_paused')).toEqual(['{} 1']);
  });

  it('tell what waits, how long, and how far the watermark is', async () => {
    const { read } = consumerMetrics();
    expect(await read('nightporter_consumer_parked_events')).toEqual(['{state="retry"} 2', '{state="dead"} 1']);
    expect(await read('nightporter_consumer_watermark_lag_seconds')).toEqual(['{producer="orders"} 12']);
    expect(await read('nightporter_consumer_registered', { zeros: true })).toEqual([
      '{producer="orders"} 1',
      '{producer="stock"} 0',
    ]);
    expect(await read('nightporter_consumer_oldest_unconsumed_seconds')).toEqual(['{} 60']);
  });

  it('leave out what the database does not tell, count that, and ask again at the next scrape', async () => {
    let isAway = false;
    let asked = 0;
    const { read } = consumerMetrics(() => {
      asked += 1;
      return isAway ? Promise.reject(new Error('away')) : Promise.resolve(FIGURES);
    });
    isAway = true;
    expect(await read('nightporter_consumer_parked_events', { zeros: true })).toEqual([]);
    expect(await read('nightporter_scrape_failures_total')).toEqual(['{} 2']);
    isAway = false;
    expect(await read('nightporter_consumer_parked_events')).toHaveLength(2);
    await read('nightporter_consumer_parked_events');
    // Two that failed, and one that serves both scrapes that follow.
    expect(asked).toBe(3);
  });
});
