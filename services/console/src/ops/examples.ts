/** One order's event that a group could not apply, as the routes tell of it. */
const EVENT_ID = '019a0000-0000-7000-8000-000000000001';
const AGGREGATE = 'orders/order/o-1';
const DIGEST = 'sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08';
const committedAt = '2026-11-30T12:00:00.000Z';
const publishedAt = '2026-11-30T12:00:00.012Z';
const failedAt = '2026-11-30T12:00:05.000Z';
const decision = { by: 'ada', reason: 'the product is in the catalogue now', at: '2026-11-30T12:10:00.000Z' };

const event = {
  eventId: EVENT_ID,
  eventType: 'OrderCreated',
  eventVersion: 1,
  source: 'orders',
  aggregate: AGGREGATE,
  version: 1,
  topic: 'orders-events',
  status: 'PUBLISHED',
  occurredAt: committedAt,
  createdAt: committedAt,
  publishedAt,
  headers: { correlationId: EVENT_ID },
  digest: DIGEST,
  producer: 'orders',
  place: 'outbox',
};
const payload = {
  customerId: 'ada',
  currency: 'EUR',
  lines: [{ productId: 'apple', quantity: 2, unitPriceMinor: 250 }],
  totalMinor: 500,
};
const failure = { code: 'NP_HANDLER_FAILED', message: 'no such product', stack: null };
const none = { rows: 0, oldestAgeMs: null };

export const status = {
  at: committedAt,
  engine: { engine: 'MongoDB', version: '8.3.11' },
  outboxes: [
    {
      producer: 'orders',
      unsettled: { PENDING: { rows: 2, oldestAgeMs: 14 }, PROCESSING: none, FAILED: none, DEAD: none },
      isCapped: false,
      newestPublishedAt: publishedAt,
    },
  ],
  groups: [
    {
      group: 'inventory',
      producer: 'orders',
      database: 'inventory',
      topics: ['orders-events'],
      state: 'live',
      watermark: committedAt,
      lagMs: 11_200,
      sweeper: 'inventory-worker-1',
      parked: { gap: 0, behind: 0, retry: 0, dead: 1, setAside: 0, oldestParkedAt: failedAt },
    },
  ],
  relay: {
    database: 'relay',
    leases: [{ shard: 'all', owner: 'relay-1', epoch: 3, isAlive: true, expiresAt: failedAt }],
    checkpoints: [{ shard: 'all', epoch: 3, seq: 117, hasToken: true, ageMs: 420 }],
    instances: [],
    pauses: [],
    repairs: [],
  },
  notKnown: [],
};

export const page = { events: [event], cursor: null, notKnown: [] };

export const timeline = {
  kind: 'known',
  event,
  payload,
  relay: { kind: 'published', form: 'original' },
  mend: null,
  publication: { topic: 'orders-events', messageId: '01F4D8…', relay: 'relay-1', epoch: 3, capturedAt: committedAt },
  actions: [],
  groups: [
    {
      group: 'inventory',
      database: 'inventory',
      isRegistered: true,
      verdict: { kind: 'dead-letter', attempts: 5, failure: { code: failure.code, message: failure.message } },
      mend: `nightporter dead retry inventory ${EVENT_ID}`,
      attempts: 5,
      repeats: 0,
      receivedAt: publishedAt,
      settledAt: null,
      appliedDigest: null,
      actions: [],
    },
  ],
  steps: [{ at: committedAt, group: null, kind: 'created', text: 'OrderCreated was committed as version 1' }],
  notKnown: [],
};

export const history = {
  aggregate: AGGREGATE,
  producer: 'orders',
  headVersion: 1,
  positions: { inventory: { version: 0, state: 'blocked' } },
  entries: [{ version: 1, event, groups: { inventory: 'parked: dead' } }],
  next: null,
  notKnown: [],
};

export const audit = {
  kind: 'completed',
  isFull: false,
  startedAt: committedAt,
  elapsedMs: 84,
  producers: [{ producer: 'orders', committed: 1, unpublished: 0, present: null, deleted: null }],
  groups: [
    {
      group: 'inventory',
      producer: 'orders',
      comparedTo: publishedAt,
      published: 1,
      publishedInThisRun: 1,
      settled: 0,
      beforeStart: 0,
      expired: 0,
      inFlight: 0,
      different: 1,
      isMarked: true,
    },
  ],
  differences: [
    {
      kind: 'dead-letter',
      producer: 'orders',
      group: 'inventory',
      eventId: EVENT_ID,
      aggregate: AGGREGATE,
      version: 1,
      text: 'Group inventory has it as a dead letter: no such product.',
      mend: `nightporter dead retry inventory ${EVENT_ID}`,
    },
  ],
  differencesTotal: 1,
  notes: [],
};

const sloFigures = {
  settled: 4_000,
  within: 3_990,
  share: 0.9975,
  p50Ms: 11,
  p99Ms: 240,
  budgetLeft: 0.5,
  burnRate: 0.5,
  notKnown: 0,
  isWhole: true,
};

export const slo = {
  objective: 0.995,
  thresholdMs: 5_000,
  groups: [
    {
      group: 'inventory',
      verdict: { kind: 'ok' },
      windows: [
        { window: '1h', ...sloFigures },
        { window: '3d', ...sloFigures, isWhole: false },
      ],
      sample: { records: 20_000, completeFrom: committedAt },
      notes: [],
    },
  ],
  notKnown: [],
};

export const findings = {
  findings: [
    {
      severity: 'warning',
      check: 'group',
      text: 'Group inventory has 1 dead letter.',
      mend: 'nightporter dead list inventory',
    },
  ],
};

const action = {
  _id: '6750a1b2c3d4e5f600000001',
  action: 'retry',
  target: EVENT_ID,
  ...decision,
};

export const actions = { actions: [{ ...action, database: 'inventory' }] };

export const outboxRows = {
  rows: [
    { ...event, status: 'DEAD', publishedAt: null, attempts: 5, nextRetryAt: null, lastError: 'message is illegal' },
  ],
};

const deadLetter = {
  eventId: EVENT_ID,
  eventType: 'OrderCreated',
  aggregate: AGGREGATE,
  version: 1,
  revision: 6,
  attempts: 5,
  failure,
  firstFailedAt: publishedAt,
  lastFailedAt: failedAt,
  parkedAt: publishedAt,
  message: {
    messageId: '01F4D8…',
    topic: 'orders-events',
    form: 'original',
    digest: DIGEST,
    envelope: { eventId: EVENT_ID, eventType: 'OrderCreated', data: payload },
  },
  edited: null,
};

export const deadLetters = { deadLetters: [deadLetter] };
export const oneDeadLetter = { deadLetter, waitingBehind: 2, actions: [action] };

export const bulk = {
  kind: 'acted',
  bulk: '3f0a6c1e-5f5e-4c8e-9a53-0b1f3b6f8a10',
  results: [{ eventId: EVENT_ID, result: { kind: 'done' } }],
};

export const setAside = {
  setAside: [
    {
      id: 'inventory\u0000' + '01F4D8…',
      topic: 'orders-events',
      messageId: '01F4D8…',
      body: 'bm90IEpTT04=',
      properties: {},
      failure: { code: 'NP_MESSAGE_UNREADABLE', message: 'the body is not JSON', stack: null },
      count: 1,
      firstFailedAt: publishedAt,
      lastFailedAt: publishedAt,
    },
  ],
};

export const done = { kind: 'done' };

export const groups = { groups: status.groups };

const selected = { eventId: EVENT_ID, aggregate: AGGREGATE, version: 1, publishedAt };
export const plan = { events: 1, aggregates: 1, first: selected, last: selected, missing: 1 };
export const replayed = { events: 1, aggregates: 1, parked: 1, skipped: 0, known: 0, conflicts: 0 };
export const removed = {
  unregistered: ['orders'],
  deleted: { started: 0, starts: 0, parked: 0, copies: 0, inbox: 0, positions: 0 },
};
export const retained = {
  kind: 'completed',
  rows: 1200,
  bytes: 734_003,
  batches: 2,
  dropped: [],
  held: [],
  heldArchives: [],
};
