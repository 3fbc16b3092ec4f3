import type { OutboxRow } from '@nightporter/contracts';
import { NightporterError, eventId, namespace, type EventId, type Namespace } from '@nightporter/protocol';
import {
  createRelay,
  type Relay,
  type RelayEvent,
  type RelayOptions,
  type RelayPorts,
  type ShardSnapshot,
} from '@nightporter/relay';
import type { MemoryWorld } from './memory/index.js';

export const OUTBOX: Namespace = namespace('orders.outbox');

export interface RelayUnderTest {
  readonly relay: Relay;
  readonly events: RelayEvent[];
  /** How often each port was called. */
  readonly calls: Readonly<Record<string, number>>;
  readonly running: Promise<void>;
  /** The shard of a relay that has one. */
  shard(): ShardSnapshot;
  eventsOf<Kind extends RelayEvent['kind']>(kind: Kind): readonly Extract<RelayEvent, { kind: Kind }>[];
}

export interface RelaySetup {
  readonly owner?: string;
  readonly options?: Partial<RelayOptions>;
  /** Puts faults between the engine and its ports. */
  readonly ports?: (ports: RelayPorts) => Partial<RelayPorts>;
}

export function startRelay(world: MemoryWorld, setup: RelaySetup = {}): RelayUnderTest {
  const events: RelayEvent[] = [];
  const calls: Record<string, number> = {};
  const owner = setup.owner ?? 'relay-1';
  const plain: RelayPorts = {
    ...world.relayStores({ relay: owner, claimMs: 300_000 }),
    publisher: world.publisher(),
    clock: world.clock,
    random: () => 0.5,
    observe: (event) => events.push(event),
  };
  const faulty = { ...plain, ...setup.ports?.(plain) };
  const relay = createRelay(counted(faulty, calls), { owner, ...setup.options });
  return {
    relay,
    events,
    calls,
    running: relay.run(),
    shard() {
      const [shard] = relay.snapshot().shards;
      if (shard === undefined) throw new Error('the relay has no shard');
      return shard;
    },
    eventsOf(kind) {
      return events.filter((event): event is Extract<RelayEvent, { kind: typeof kind }> => event.kind === kind);
    },
  };
}

function counted(ports: RelayPorts, calls: Record<string, number>): RelayPorts {
  const count = <Arguments extends unknown[], Result>(
    name: string,
    call: (...given: Arguments) => Result,
  ): ((...given: Arguments) => Result) => {
    return (...given) => {
      calls[name] = (calls[name] ?? 0) + 1;
      return call(...given);
    };
  };
  const { leases, checkpoints, capture, reader, marker, publisher, stats } = ports;
  return {
    ...ports,
    leases: { ...leases, acquire: count('acquire', (request) => leases.acquire(request)) },
    checkpoints: { ...checkpoints, save: count('save', (request) => checkpoints.save(request)) },
    capture: { open: count('open', (request) => capture.open(request)) },
    reader: {
      readUnsettled: count('readUnsettled', (request) => reader.readUnsettled(request)),
      readLanes: count('readLanes', (lanes, limit) => reader.readLanes(lanes, limit)),
      lookUp: count('lookUp', (references) => reader.lookUp(references)),
    },
    marker: { mark: count('mark', (marks) => marker.mark(marks)) },
    publisher: { publish: count('publish', (request) => publisher.publish(request)) },
    ...(stats !== undefined && { stats: { read: count('stats', () => stats.read()) } }),
  };
}

/** Commits events of these aggregates, in one transaction; ids are `aggregate/version`. */
export function commit(world: MemoryWorld, ...aggregateIds: readonly string[]): readonly OutboxRow[] {
  return aggregateIds.map((aggregateId) => {
    const version = nextVersion(world, aggregateId);
    const [row] = world.database.outbox.commit([
      {
        namespace: OUTBOX,
        eventId: idOf(aggregateId, version),
        source: 'orders',
        aggregateType: aggregateId.startsWith('invoice') ? 'invoice' : 'order',
        aggregateId,
        eventType: 'OrderPaid',
        topic: aggregateId.startsWith('invoice') ? 'invoices-events' : 'orders-events',
        payload: { version },
      },
    ]);
    if (row === undefined) throw new Error('nothing was committed');
    return row;
  });
}

export const idOf = (aggregateId: string, version: number): EventId => eventId(`${aggregateId}/${version}`);

const versions = new WeakMap<MemoryWorld, Map<string, number>>();

function nextVersion(world: MemoryWorld, aggregateId: string): number {
  const known = versions.get(world) ?? new Map<string, number>();
  versions.set(world, known);
  const version = (known.get(aggregateId) ?? 0) + 1;
  known.set(aggregateId, version);
  return version;
}

/** Ids of what the broker stored, in that order. */
export function watchLandings(world: MemoryWorld): readonly string[] {
  const landed: string[] = [];
  world.broker.onLanded = ({ request }) => landed.push(request.row.eventId);
  return landed;
}

export function statusOf(world: MemoryWorld, aggregateId: string, version: number): string {
  return world.database.outbox.find(idOf(aggregateId, version))?.status ?? 'gone';
}

/** Stops a relay in the world's time. */
export async function stopRelay(world: MemoryWorld, { relay, running }: RelayUnderTest): Promise<void> {
  const stopped = relay.stop();
  await world.clock.advance(31_000);
  await stopped;
  await running;
}

/** A call that never answers, until it is let through. */
export class Barrier {
  #waiting: (() => void)[] = [];
  closed = false;

  async pass(): Promise<void> {
    if (!this.closed) return;
    await new Promise<void>((resolve) => this.#waiting.push(resolve));
  }

  open(): void {
    this.closed = false;
    for (const resolve of this.#waiting.splice(0)) resolve();
  }
}

/** A database that does not answer. */
export const unavailable = (): Promise<never> => Promise.reject(new NightporterError('NP_STORE_UNAVAILABLE', 'down'));
