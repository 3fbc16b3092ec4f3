import type { EventEnvelope } from '@nightporter/contracts';
import { parkedEvent, type ParkedDocument } from '@nightporter/mongo';
import { aggregateKey, aggregateVersion, eventId } from '@nightporter/protocol';
import { describe, expect, it } from 'vitest';
import { decideSkip, type GroupTransaction } from './skip.js';

type State = Awaited<ReturnType<GroupTransaction['load']>>;

const identity = { source: 'orders', aggregateType: 'order', aggregateId: '1' };
const aggregate = aggregateKey(identity);

function parked(version: number, more: Partial<Pick<ParkedDocument, 'state' | 'original'>> = {}) {
  const envelope: EventEnvelope = {
    ...identity,
    eventId: eventId(`e${version}`),
    eventType: 'OrderPaid',
    eventVersion: 1,
    aggregateVersion: aggregateVersion(version),
    occurredAt: '2026-01-02T03:04:05.006Z',
    data: {},
  };
  return parkedEvent({
    aggregate,
    version,
    event: {
      eventId: envelope.eventId,
      eventType: 'OrderPaid',
      envelope: JSON.stringify(envelope),
      topic: 'orders-events',
      form: 'original',
      digest: `digest ${version}`,
      messageId: `m${version}`,
    },
    state: 'dead',
    attempts: 5,
    revision: 3,
    ...more,
  });
}

const dead = parked(2);

/** The group as it is while version 2 is dead, with what differs. */
function state({
  position = 1,
  next = false,
  settled = [],
}: {
  position?: number;
  next?: boolean;
  settled?: number[];
}): State {
  const records = settled.map((version) => ({
    eventId: eventId(`e${version}`),
    aggregate,
    version: aggregateVersion(version),
    outcome: 'applied' as const,
  }));
  const rows = next ? [dead, parked(3, { state: 'behind' })] : [dead];
  return {
    positions: new Map([[aggregate, { version: position, startVersion: 0, state: 'blocked' as const }]]),
    inboxByEvent: new Map(records.map((record) => [record.eventId, record])),
    inboxByVersion: new Map(records.map((record) => [`${aggregate}#${record.version}`, record])),
    parked: new Map(rows.map((row) => [`${aggregate}#${row.event.envelope.aggregateVersion}`, row])),
    nowMs: 0,
  };
}

describe('skipping a dead letter', () => {
  it('settles it, removes its row, moves the position on and opens it', () => {
    expect(decideSkip(state({}), dead)).toEqual({
      kind: 'write',
      verdict: 'skip',
      changes: [
        { kind: 'settle', event: dead.event, outcome: 'skipped', attempts: 5 },
        { kind: 'unpark', aggregate, version: 2 },
        { kind: 'position', aggregate, position: { version: 2, startVersion: 0, state: 'open' } },
      ],
    });
  });

  it('makes the version behind it due, and leaves the position blocked by that', () => {
    const decision = decideSkip(state({ next: true }), dead);
    expect(decision.kind === 'write' && decision.changes.slice(2)).toEqual([
      { kind: 'position', aggregate, position: { version: 2, startVersion: 0, state: 'blocked' } },
      { kind: 'make-due', aggregate, version: 3 },
    ]);
  });

  it('settles it by the digest that was written, where it had been edited', () => {
    const edited = parked(2, { original: { digest: 'written' } as NonNullable<ParkedDocument['original']> });
    const decision = decideSkip(state({}), edited);
    expect(decision.kind === 'write' && decision.changes[0]).toMatchObject({ event: { digest: 'written' } });
  });

  it('leaves no hole: below it everything must be settled', () => {
    expect(decideSkip(state({ position: 0 }), dead)).toEqual({ kind: 'not-next', position: 0 });
  });

  it('only clears its row away where the version turns out to be settled', () => {
    expect(decideSkip(state({ position: 2, settled: [2] }), dead)).toEqual({
      kind: 'write',
      verdict: 'duplicate',
      changes: [{ kind: 'unpark', aggregate, version: 2 }],
    });
  });
});
