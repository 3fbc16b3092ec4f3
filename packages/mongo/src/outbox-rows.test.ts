import type { OutboxDocument } from '@nightporter/contracts';
import { aggregateVersion, eventId, namespace, slot } from '@nightporter/protocol';
import { describe, expect, it } from 'vitest';
import { needsMoment, outboxRow } from './outbox-rows.js';

const now = new Date('2026-03-01T12:00:00.000Z');
const moment = { now, claimMs: 60_000, owner: 'me' };
const document: OutboxDocument = {
  _id: eventId('event 1'),
  source: 'orders',
  aggregateType: 'order',
  aggregateId: '1',
  aggregateVersion: aggregateVersion(1),
  eventType: 'OrderCreated',
  eventVersion: 1,
  topic: 'orders-events',
  eventKey: 'orders/order/1',
  payload: { total: 1 },
  digest: 'd',
  occurredAt: new Date('2026-01-02T03:04:05.678Z'),
  headers: {},
  slot: slot(3),
  status: 'PENDING',
  unsettled: true,
  retryCount: 0,
  nextRetryAt: null,
  lastError: null,
  createdAt: now,
  publishedAt: null,
  updatedAt: now,
  revision: 1,
  publication: null,
  skip: null,
  unanswered: false,
};

function rowOf(changes: Partial<OutboxDocument>): ReturnType<typeof outboxRow> {
  return outboxRow(namespace('orders.outbox'), { ...document, ...changes }, moment);
}

function before(ms: number): Date {
  return new Date(now.getTime() - ms);
}

describe('an outbox row as the relay reads it', () => {
  it.each<[string, Partial<OutboxDocument>, { status: string; dueInMs: number }]>([
    ['a new one is due', {}, { status: 'PENDING', dueInMs: 0 }],
    [
      'a failed one waits for its time',
      { status: 'FAILED', nextRetryAt: before(-1_500) },
      { status: 'FAILED', dueInMs: 1_500 },
    ],
    [
      'a failed one whose time has passed is due',
      { status: 'FAILED', nextRetryAt: before(1) },
      { status: 'FAILED', dueInMs: 0 },
    ],
    [
      'a claimed one waits for the claim to end',
      { status: 'PROCESSING', updatedAt: before(20_000) },
      { status: 'PROCESSING', dueInMs: 40_000 },
    ],
    [
      'one whose claim is too old counts as pending',
      { status: 'PROCESSING', updatedAt: before(60_000) },
      { status: 'PENDING', dueInMs: 0 },
    ],
  ])('%s', (_name, changes, standing) => {
    expect(rowOf(changes)).toMatchObject(standing);
    expect(needsMoment({ ...document, ...changes })).toBe(Object.keys(changes).length > 0);
  });

  it('is published as a tombstone once an operator has asked for that', () => {
    expect(rowOf({}).form).toBe('original');
    expect(rowOf({ skip: { by: 'operator', reason: 'test', at: now } }).form).toBe('tombstone');
  });

  it('tells when it occurred to the millisecond', () => {
    expect(rowOf({}).occurredAt).toBe('2026-01-02T03:04:05.678Z');
  });

  it('comes as it is when somebody wrote it past emit()', () => {
    const foreign = { _id: 'x', occurredAt: 'yesterday', slot: 1, status: 'PROCESSING' } as unknown as OutboxDocument;
    expect(outboxRow(namespace('orders.outbox'), foreign, moment)).toMatchObject({
      eventId: 'x',
      occurredAt: 'yesterday',
      form: 'original',
      dueInMs: 0,
    });
  });
});
