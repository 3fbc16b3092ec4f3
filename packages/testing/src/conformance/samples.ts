import type { IncomingEvent } from '@nightporter/consumer';
import { digestOf, type EventEnvelope } from '@nightporter/contracts';
import { aggregateKey, aggregateVersion, eventId } from '@nightporter/protocol';

let samples = 0;

/** A name that no other test uses. */
export function uniqueId(prefix: string): string {
  samples += 1;
  return `${prefix}-${process.pid}-${samples}`;
}

/** An event as a consumer receives it. */
export function incomingEvent({ aggregateId, version }: { aggregateId: string; version: number }): IncomingEvent {
  const envelope: EventEnvelope = {
    eventId: eventId(uniqueId(`event-${aggregateId}-${version}`)),
    source: 'conformance',
    eventType: 'SampleHappened',
    eventVersion: 1,
    aggregateType: 'sample',
    aggregateId,
    aggregateVersion: aggregateVersion(version),
    occurredAt: '2026-01-02T03:04:05.678Z',
    correlationId: 'story 1',
    data: { text: 'é ✓ "quoted"', number: -12.5, list: [null, true, {}] },
  };
  return {
    envelope,
    aggregate: aggregateKey(envelope),
    topic: 'sample-events',
    form: 'original',
    digest: digestOf(envelope),
    messageId: uniqueId('message'),
  };
}

/** Resolves once `condition` holds; rejects after `limitMs`. */
export async function eventually(condition: () => Promise<boolean>, limitMs: number, what: string): Promise<void> {
  const deadline = Date.now() + limitMs;
  while (!(await condition())) {
    if (Date.now() > deadline) throw new Error(`${what}: not within ${limitMs} ms`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
