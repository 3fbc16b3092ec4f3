import { eventId } from '@nightporter/protocol';
import type { CommittedEvent } from '../memory/index.js';
import type { Cluster } from './cluster.js';
import type { SimulatedAggregate } from './layout.js';

/** Commits transactions of one to three events over one or two aggregates until all events of the history are written. */
export function startProducer(cluster: Cluster, faultsEndMs: number): void {
  const { schedule, knobs } = cluster;
  const random = cluster.random.fork();
  const meanGapMs = (faultsEndMs * 0.9) / knobs.events;
  let written = 0;

  function commitSome(): void {
    const count = Math.min(1 + random.integer(3), knobs.events - written);
    const first = pickAggregate();
    const second = random.chance(0.3) ? pickAggregate() : first;
    const events = Array.from({ length: count }, (_, index) => newEvent(index % 2 === 0 ? first : second));
    cluster.database.outbox.commit(events);
    if (written < knobs.events) schedule.after(gapMs() * count, commitSome);
  }

  function gapMs(): number {
    return random.chance(0.3) ? random.between(0, 20) : random.between(10, 2 * meanGapMs);
  }

  function pickAggregate(): SimulatedAggregate | undefined {
    return cluster.aggregates[random.integer(cluster.aggregates.length)];
  }

  function newEvent(aggregate: SimulatedAggregate | undefined): CommittedEvent {
    if (aggregate === undefined) throw new Error('a history needs an aggregate');
    written += 1;
    return {
      ...aggregate,
      eventId: eventId(`event-${written}`),
      eventType: random.chance(0.1) ? 'ThingNobodyHandles' : 'ThingHappened',
      eventVersion: knobs.poison && random.chance(0.03) ? 2 : 1,
      payload: { number: written, text: 'é' },
    };
  }

  schedule.after(gapMs(), commitSome);
}
