import { digestOf, type EventEnvelope } from '@nightporter/contracts';
import { aggregateKey, aggregateVersion, eventId, type AggregateKey } from '@nightporter/protocol';
import { describe, expect, it } from 'vitest';
import {
  decideParking,
  withoutData,
  type GroupState,
  type IncomingEvent,
  type Parked,
  type Replayed,
} from './decide.js';

const IDENTITY = { source: 'orders', aggregateType: 'order', aggregateId: '7' };
const AGGREGATE: AggregateKey = aggregateKey(IDENTITY);
const DUE_IN_MS = 250;

function event(version: number, id = `e${version}`): IncomingEvent {
  const envelope: EventEnvelope = {
    ...IDENTITY,
    eventId: eventId(id),
    eventType: 'OrderPaid',
    eventVersion: 1,
    aggregateVersion: aggregateVersion(version),
    occurredAt: '2026-01-02T03:04:05.678Z',
    data: { version },
  };
  const digest = digestOf(envelope);
  return { envelope, aggregate: AGGREGATE, topic: 'orders-events', form: 'original', digest, messageId: `m${version}` };
}

const replayed = (version: number, details: Partial<Replayed> = {}): Replayed => ({
  event: event(version),
  isSelected: true,
  isPassed: false,
  ...details,
});

interface Known {
  readonly position?: Partial<{ version: number; startVersion: number; state: 'open' | 'blocked' }>;
  /** Event by version. */
  readonly settled?: Readonly<Record<number, string>>;
  readonly parked?: readonly { readonly event: IncomingEvent; readonly state: 'gap' | 'behind' | 'retry' | 'dead' }[];
}

/** What the group's documents say of the aggregate. */
function stateOf({ position, settled = {}, parked = [] }: Known): GroupState {
  const records = Object.entries(settled).map(([version, id]) => ({
    eventId: eventId(id),
    aggregate: AGGREGATE,
    version: aggregateVersion(Number(version)),
    outcome: 'applied' as const,
  }));
  const key = (version: number): string => `${AGGREGATE}#${version}`;
  const place = { version: 0, startVersion: 0, state: 'open' as const, ...position };
  return {
    positions: position === undefined ? new Map() : new Map([[AGGREGATE, place]]),
    inboxByEvent: new Map(records.map((record) => [record.eventId, record])),
    inboxByVersion: new Map(records.map((record) => [key(record.version), record])),
    parked: new Map(
      parked.map((row) => [key(row.event.envelope.aggregateVersion), { ...row, attempts: 0, revision: 1 }]),
    ),
    nowMs: 0,
  };
}

const decide = (known: Known, ...events: readonly Replayed[]): Parked =>
  decideParking(stateOf(known), AGGREGATE, { events, dueInMs: DUE_IN_MS });

/** The writes in short: `park 3 behind`, `position 2 blocked`. */
function written({ changes }: Parked): readonly string[] {
  return changes.map((change) => {
    switch (change.kind) {
      case 'park':
        return `park ${change.event.envelope.aggregateVersion} ${change.state}`;
      case 'position':
        return `position ${change.position.version} ${change.position.state}`;
      case 'make-due':
      case 'unpark':
        return `${change.kind} ${change.version}`;
      case 'settle':
      case 'count-duplicate':
      case 'set-aside':
        return change.kind;
    }
  });
}

describe('what a replay parks', () => {
  it('is due where it is its turn, after the delay that was asked for, and waits behind that where it is not', () => {
    const result = decide({}, replayed(1), replayed(2), replayed(3));
    expect(written(result)).toEqual([
      'park 1 retry',
      'position 0 blocked',
      'park 2 behind',
      'position 0 blocked',
      'park 3 behind',
      'position 0 blocked',
    ]);
    const parks = result.changes.flatMap((change) => (change.kind === 'park' ? [change] : []));
    expect(parks.map(({ retryInMs }) => retryInMs)).toEqual([DUE_IN_MS, null, null]);
    expect(parks.map(({ attempts }) => attempts)).toEqual([0, 0, 0]);
    expect(result).toMatchObject({ parked: 3, skipped: 0, known: 0, conflicts: 0 });
  });

  it('goes on behind the position of the group', () => {
    expect(written(decide({ position: { version: 4, startVersion: 2 } }, replayed(5)))).toEqual([
      'park 5 retry',
      'position 4 blocked',
    ]);
  });

  it('waits for what is missing before it, and blocks nothing', () => {
    expect(written(decide({ position: { version: 1 } }, replayed(3)))).toEqual(['park 3 gap', 'position 1 open']);
  });

  it('waits behind a row that is parked already, whatever that waits for', () => {
    const known: Known = { position: { state: 'blocked' }, parked: [{ event: event(1), state: 'dead' }] };
    expect(written(decide(known, replayed(1), replayed(2)))).toEqual(['park 2 behind', 'position 0 blocked']);
  });

  it('is parked once, though it is given twice', () => {
    const result = decide({}, replayed(1), replayed(1));
    expect(written(result)).toEqual(['park 1 retry', 'position 0 blocked']);
    expect(result).toMatchObject({ parked: 1, known: 1 });
  });

  it('counts apart what was not selected', () => {
    const result = decide({}, replayed(1), replayed(2, { isSelected: false }), replayed(3));
    expect(result).toMatchObject({ parked: 2, skipped: 1, known: 0 });
  });

  it('is a dead letter, due for nobody, where the watermark says that it was settled long ago', () => {
    const result = decide({}, replayed(1, { isPassed: true }), replayed(2));
    expect(written(result)).toEqual(['park 1 dead', 'position 0 blocked', 'park 2 behind', 'position 0 blocked']);
    expect(result.changes[0]).toMatchObject({ retryInMs: null, failure: { code: 'NP_POSITION_LOST' } });
  });
});

describe('what a replay leaves alone', () => {
  it.each<[string, Known, number]>([
    ['is settled', { position: { version: 2 }, settled: { 1: 'e1', 2: 'e2' } }, 2],
    ['was settled so long ago that the inbox has forgotten it', { position: { version: 2 } }, 1],
    ['is before the start of the group', { position: { version: 5, startVersion: 5 } }, 3],
    ['is parked in its turn', { position: { state: 'blocked' }, parked: [{ event: event(1), state: 'retry' }] }, 1],
    ['is parked as a dead letter', { position: { state: 'blocked' }, parked: [{ event: event(1), state: 'dead' }] }, 1],
    ['waits in a gap', { parked: [{ event: event(3), state: 'gap' }] }, 3],
  ])('%s', (_name, known, version) => {
    const result = decide(known, replayed(version));
    expect(result).toEqual({ changes: [], parked: 0, skipped: 0, known: 1, conflicts: 0 });
  });

  it.each<[string, Known]>([
    ['another event was settled there', { position: { version: 1 }, settled: { 1: 'other' } }],
    [
      'another event is parked there',
      { position: { state: 'blocked' }, parked: [{ event: event(1, 'other'), state: 'retry' }] },
    ],
    ['its event was settled elsewhere', { position: { version: 4 }, settled: { 4: 'e1' } }],
  ])('is a conflict where %s', (_name, known) => {
    const result = decide(known, replayed(1));
    expect(result).toEqual({ changes: [], parked: 0, skipped: 0, known: 0, conflicts: 1 });
  });
});

describe('what a replay mends', () => {
  it('is a position that was lost, moved on as far as the inbox remembers, and then the next one is due', () => {
    const result = decide({ settled: { 1: 'e1', 2: 'e2' } }, replayed(1), replayed(2), replayed(3));
    expect(written(result)).toEqual(['position 1 open', 'position 2 open', 'park 3 retry', 'position 2 blocked']);
    expect(result).toMatchObject({ parked: 1, known: 2 });
  });

  it('is a row that is next in line and that nobody woke', () => {
    const known: Known = { position: { version: 1 }, parked: [{ event: event(2), state: 'gap' }] };
    expect(written(decide(known, replayed(2)))).toEqual(['position 1 blocked', 'make-due 2']);
  });
});

it('an event without its data is a tombstone of the same identity, with a digest of its own', () => {
  const original = event(2);
  const tombstone = withoutData(original);
  expect(tombstone).toEqual({
    ...original,
    envelope: { ...original.envelope, data: null },
    form: 'tombstone',
    digest: digestOf({ ...original.envelope, data: null }),
  });
  expect(tombstone.digest).not.toBe(original.digest);
});
