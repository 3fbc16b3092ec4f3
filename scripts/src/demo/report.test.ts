import type { OutboxDocument } from '@nightporter/contracts';
import type { InboxDocument } from '@nightporter/mongo';
import { describe, expect, it } from 'vitest';
import type { GroupEvidence } from './evidence.js';
import { reportText, summarize, type Findings } from './report.js';

const row = (eventId: string, topic: string): OutboxDocument =>
  ({ _id: eventId, topic, status: 'PUBLISHED', createdAt: new Date(0) }) as OutboxDocument;

const group = (name: string, settled: readonly string[]): GroupEvidence => ({
  group: name,
  topics: ['orders-events'],
  inbox: settled.map((eventId) => ({ eventId, processedAt: new Date(5), duplicates: 0 }) as InboxDocument),
  positions: [],
  parked: [],
  setAside: 0,
});

const findings = (groups: readonly GroupEvidence[]): Findings => ({
  engine: 'engine',
  broker: 'broker',
  traffic: { acknowledged: [], orders: new Map(), refused: 0, replayed: 0, unexpected: [] },
  evidence: {
    rows: [row('e1', 'orders-events'), row('e2', 'orders-events'), row('e3', 'inventory-events')],
    heads: [],
    groups,
    orders: [],
    stock: [],
    reservations: [],
    movements: [],
  },
  violations: [],
  reconciliation: { orders: 0, differences: [], differencesTotal: 0, refundsDue: [] },
  cameToRest: true,
  kills: [],
  redelivered: 0,
  messages: 3,
  clients: 1,
  elapsedMs: 1,
});

describe('the report of the demo', () => {
  it('counts an event as settled only when every group of its topic has settled it', () => {
    expect(summarize(findings([group('a', ['e1', 'e2'])])).settled).toBe(3);
    expect(summarize(findings([group('a', ['e1', 'e2']), group('b', ['e2'])])).settled).toBe(2);
  });

  it('says how many events had no group to settle them', () => {
    const read = reportText(findings([group('a', ['e1', 'e2'])]));
    expect(read).toContain('no group is registered for inventory-events, so that nothing had to settle the 1 events');
    expect(reportText(findings([]))).toContain('nothing had to settle the 3 events');
  });

  it('is not all right where two services say different things of an order', () => {
    const difference = { orderId: 'o1', between: 'orders and points', detail: 'has no points', brokeAt: null };
    const good = findings([]);
    expect(summarize(good)).toMatchObject({ ok: true, differences: 0 });
    const reconciliation = { ...good.reconciliation, differences: [difference], differencesTotal: 1 };
    expect(summarize({ ...good, reconciliation })).toMatchObject({ ok: false, differences: 1 });
    expect(reportText({ ...good, reconciliation })).toContain('orders and points: o1 has no points');
  });
});
