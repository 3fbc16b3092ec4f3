import type { Delivery, Subscriber } from '@nightporter/consumer';
import {
  MESSAGE_PROPERTIES,
  decodeEnvelope,
  defaultEventKey,
  digestOf,
  envelopeOf,
  type OutboxRow,
} from '@nightporter/contracts';
import type { Publisher } from '@nightporter/relay';
import { aggregateVersion, epoch, eventId, namespace, slotOf } from '@nightporter/protocol';
import { describe, expect, it } from 'vitest';
import { eventually, uniqueId } from './samples.js';

export interface BrokerFixture {
  readonly publisher: Publisher;
  /** A FIFO topic that nobody has sent to. */
  readonly topic: string;
  /** A subscription of a new group to the topic, from its beginning. */
  readonly subscribe: (group: string) => Promise<Subscriber>;
  /** The shortest invisibility that the broker keeps to. */
  readonly invisibleMsMin: number;
  /** Lets the broker's clock go on. */
  readonly passTime: (byMs: number) => Promise<void>;
}

const RECEIVE_LIMIT_MS = 20_000;

/** Every pair of publisher and subscriber keeps to this. The fixture brings a fresh topic for each test. */
export function brokerConformance(name: string, makeFixture: () => Promise<BrokerFixture>): void {
  describe(`${name} as a publisher`, () => {
    describePublishing(makeFixture);
  });
  describe(`${name} as a subscriber`, () => {
    describeReceiving(makeFixture);
    describeRedelivery(makeFixture);
  });
}

function describePublishing(makeFixture: () => Promise<BrokerFixture>): void {
  it('carries the envelope, its digest and the properties exactly', async () => {
    const fixture = await makeFixture();
    const subscriber = await fixture.subscribe(uniqueId('group'));
    const row = sampleRow(fixture.topic, { aggregateId: 'a', version: 1 });
    const { messageId } = await publish(fixture, row);
    const [delivery] = await drain(subscriber, { count: 1 });
    const envelope = envelopeOf(row, 'original');
    expect(decodeEnvelope(delivery!.body)).toEqual({ kind: 'envelope', envelope });
    expect(delivery).toMatchObject({ topic: fixture.topic, deliveryAttempt: 1, messageId });
    expect(delivery!.properties).toMatchObject({
      [MESSAGE_PROPERTIES.form]: 'original',
      [MESSAGE_PROPERTIES.digest]: digestOf(envelope),
      [MESSAGE_PROPERTIES.relayEpoch]: '7',
      [MESSAGE_PROPERTIES.source]: row.source,
      [MESSAGE_PROPERTIES.eventVersion]: '1',
    });
  });

  it('sends a tombstone in place of a skipped event', async () => {
    const fixture = await makeFixture();
    const subscriber = await fixture.subscribe(uniqueId('group'));
    const row: OutboxRow = { ...sampleRow(fixture.topic, { aggregateId: 'a', version: 1 }), form: 'tombstone' };
    await publish(fixture, row);
    const [delivery] = await drain(subscriber, { count: 1 });
    expect(delivery!.properties[MESSAGE_PROPERTIES.form]).toBe('tombstone');
    const decoded = decodeEnvelope(delivery!.body);
    expect(decoded).toMatchObject({ kind: 'envelope', envelope: { eventId: row.eventId, data: null } });
    expect(delivery!.properties[MESSAGE_PROPERTIES.digest]).toBe(digestOf(envelopeOf(row, 'tombstone')));
  });

  it('takes ids with spaces, slashes, colons, emoji and 200 characters', async () => {
    const fixture = await makeFixture();
    const subscriber = await fixture.subscribe(uniqueId('group'));
    const aggregateIds = ['a b', 'a/b:c', '🌙 night', 'x'.repeat(200)];
    for (const aggregateId of aggregateIds)
      await publish(fixture, sampleRow(fixture.topic, { aggregateId, version: 1 }));
    const deliveries = await drain(subscriber, { count: aggregateIds.length });
    expect(deliveries.map((delivery) => identityOf(delivery).aggregateId).sort()).toEqual([...aggregateIds].sort());
  });
}

function describeReceiving(makeFixture: () => Promise<BrokerFixture>): void {
  it('answers with nothing when there is nothing', async () => {
    const fixture = await makeFixture();
    const subscriber = await fixture.subscribe(uniqueId('group'));
    expect(await subscriber.receive({ max: 32, invisibleMs: fixture.invisibleMsMin })).toEqual([]);
  });

  it('keeps the order of every message group, over many groups sent at once', async () => {
    const fixture = await makeFixture();
    const subscriber = await fixture.subscribe(uniqueId('group'));
    const aggregateIds = Array.from({ length: 10 }, (_, index) => `a${index}`);
    await Promise.all(
      aggregateIds.map(async (aggregateId) => {
        for (const version of [1, 2, 3, 4, 5])
          await publish(fixture, sampleRow(fixture.topic, { aggregateId, version }));
      }),
    );
    const deliveries = await drain(subscriber, { count: 50 });
    for (const aggregateId of aggregateIds) {
      const own = deliveries.map(identityOf).filter((identity) => identity.aggregateId === aggregateId);
      expect(own.map((identity) => identity.version)).toEqual([1, 2, 3, 4, 5]);
    }
  });

  it('gives every group every message', async () => {
    const fixture = await makeFixture();
    const subscribers = [await fixture.subscribe(uniqueId('group')), await fixture.subscribe(uniqueId('group'))];
    for (const version of [1, 2, 3]) await publish(fixture, sampleRow(fixture.topic, { aggregateId: 'a', version }));
    for (const subscriber of subscribers) {
      const versions = (await drain(subscriber, { count: 3 })).map((delivery) => identityOf(delivery).version);
      expect(versions).toEqual([1, 2, 3]);
    }
  });

  it('hands out nothing more of a message group until what it handed out is acknowledged', async () => {
    const fixture = await makeFixture();
    const subscriber = await fixture.subscribe(uniqueId('group'));
    for (const version of [1, 2, 3]) await publish(fixture, sampleRow(fixture.topic, { aggregateId: 'a', version }));
    const first = await receiveSome(subscriber, { max: 1, invisibleMs: 60_000 });
    expect(first.map((delivery) => identityOf(delivery).version)).toEqual([1]);
    expect(await subscriber.receive({ max: 32, invisibleMs: 60_000 })).toEqual([]);
    await subscriber.acknowledge(first);
    const rest = await drain(subscriber, { count: 2 });
    expect(rest.map((delivery) => identityOf(delivery).version)).toEqual([2, 3]);
  });
}

function describeRedelivery(makeFixture: () => Promise<BrokerFixture>): void {
  it('brings what was not acknowledged again, in order, with a raised attempt', async () => {
    const fixture = await makeFixture();
    const subscriber = await fixture.subscribe(uniqueId('group'));
    for (const version of [1, 2]) await publish(fixture, sampleRow(fixture.topic, { aggregateId: 'a', version }));
    const first = await receiveSome(subscriber, { max: 32, invisibleMs: fixture.invisibleMsMin });
    expect(first.map((delivery) => delivery.deliveryAttempt)).toEqual([1, 1]);
    await fixture.passTime(fixture.invisibleMsMin + 500);
    const again = await drain(subscriber, { count: 2 });
    expect(again.map((delivery) => identityOf(delivery).version)).toEqual([1, 2]);
    expect(again[0]!.deliveryAttempt).toBeGreaterThan(1);
  });

  it('takes an acknowledgement with a stale receipt for no error', async () => {
    const fixture = await makeFixture();
    const subscriber = await fixture.subscribe(uniqueId('group'));
    await publish(fixture, sampleRow(fixture.topic, { aggregateId: 'a', version: 1 }));
    const first = await receiveSome(subscriber, { max: 1, invisibleMs: fixture.invisibleMsMin });
    await fixture.passTime(fixture.invisibleMsMin + 500);
    const again = await receiveSome(subscriber, { max: 1, invisibleMs: 60_000 });
    await expect(subscriber.acknowledge(first)).resolves.toBeUndefined();
    await expect(subscriber.acknowledge(again)).resolves.toBeUndefined();
  });

  it('keeps extended deliveries away from others, and takes their new receipts', async () => {
    const fixture = await makeFixture();
    const subscriber = await fixture.subscribe(uniqueId('group'));
    await publish(fixture, sampleRow(fixture.topic, { aggregateId: 'a', version: 1 }));
    const first = await receiveSome(subscriber, { max: 1, invisibleMs: fixture.invisibleMsMin });
    const extended = await subscriber.extend(first, 3 * fixture.invisibleMsMin + 3_000);
    await fixture.passTime(fixture.invisibleMsMin + 500);
    expect(await subscriber.receive({ max: 1, invisibleMs: fixture.invisibleMsMin })).toEqual([]);
    await subscriber.acknowledge(extended);
    await publish(fixture, sampleRow(fixture.topic, { aggregateId: 'a', version: 2 }));
    const next = await drain(subscriber, { count: 1 });
    expect(next.map((delivery) => identityOf(delivery).version)).toEqual([2]);
  });
}

async function publish({ publisher }: BrokerFixture, row: OutboxRow): Promise<{ messageId: string }> {
  return publisher.publish({ row, relay: 'relay 1', epoch: epoch(7) });
}

/** Receives and acknowledges until `count` messages have come. */
async function drain(subscriber: Subscriber, { count }: { count: number }): Promise<readonly Delivery[]> {
  const deliveries: Delivery[] = [];
  await eventually(
    async () => {
      const received = await subscriber.receive({ max: 32, invisibleMs: 60_000 });
      deliveries.push(...received);
      await subscriber.acknowledge(received);
      return deliveries.length >= count;
    },
    RECEIVE_LIMIT_MS,
    `${count} messages`,
  );
  return deliveries;
}

async function receiveSome(
  subscriber: Subscriber,
  request: { max: number; invisibleMs: number },
): Promise<readonly Delivery[]> {
  let received: readonly Delivery[] = [];
  await eventually(
    async () => {
      received = await subscriber.receive(request);
      return received.length > 0;
    },
    RECEIVE_LIMIT_MS,
    'a message',
  );
  return received;
}

function identityOf(delivery: Delivery): { aggregateId: string; version: number } {
  const decoded = decodeEnvelope(delivery.body);
  if (decoded.kind !== 'envelope') throw new Error(`message ${delivery.messageId}: ${decoded.reason}`);
  return { aggregateId: decoded.envelope.aggregateId, version: decoded.envelope.aggregateVersion };
}

function sampleRow(topic: string, { aggregateId, version }: { aggregateId: string; version: number }): OutboxRow {
  const identity = { source: 'conformance', aggregateType: 'sample', aggregateId };
  const eventKey = defaultEventKey(identity);
  const row: OutboxRow = {
    ...identity,
    namespace: namespace('conformance.outbox'),
    eventId: eventId(uniqueId('event')),
    aggregateVersion: aggregateVersion(version),
    eventType: 'SampleHappened',
    eventVersion: 1,
    topic,
    eventKey,
    slot: slotOf(eventKey),
    payload: { text: 'é ✓ "quoted"', emoji: '🌙', number: -12.5, large: 9007199254740991, list: [null, true, {}] },
    digest: '',
    headers: { tenantId: 'tenant 1', correlationId: 'story 1' },
    occurredAt: '2026-01-02T03:04:05.678Z',
    status: 'PENDING',
    retryCount: 0,
    revision: 1,
    unanswered: false,
    dueInMs: 0,
    form: 'original',
  };
  return { ...row, digest: digestOf(envelopeOf(row, 'original')) };
}
