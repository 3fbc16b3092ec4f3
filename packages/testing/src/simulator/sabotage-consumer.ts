import {
  type ConsumerPorts,
  type EventPlace,
  type GroupChange,
  type GroupState,
  type GroupTransaction,
  type Position,
  type Subscriber,
} from '@nightporter/consumer';
import { digestOf } from '@nightporter/contracts';
import type { MemorySession } from '../memory/index.js';
import { isNightporterError, type AggregateKey } from '@nightporter/protocol';
import type { Sabotage } from './sabotage.js';

type Ports = ConsumerPorts<MemorySession>;
type Transaction = GroupTransaction<MemorySession>;

export const CONSUMER_SABOTAGES: readonly Sabotage[] = [
  {
    name: 'untouched-position',
    removes: 'parking a version writes its position, so that it conflicts with whoever settles the one before it',
    breaks: ['blocked means parked'],
    consumer: (ports) => withSaves(ports, (changes) => (parksOnly(changes) ? without(changes, 'position') : changes)),
  },
  {
    name: 'no-sequence',
    removes: 'a version is handled only after the one before it (I8)',
    breaks: ['I8 sequence'],
    consumer: (ports) => withLoads(ports, (state, events) => ({ ...state, positions: rightBefore(events) })),
  },
  {
    name: 'no-inbox',
    removes: 'what was settled is on record with its effect (I7)',
    breaks: ['I7 effect once'],
    consumer: (ports) => {
      const blind = withLoads(ports, (state) => ({ ...state, inboxByEvent: new Map(), inboxByVersion: new Map() }));
      return withSaves(blind, (changes) => without(changes, 'settle'));
    },
  },
  {
    name: 'acknowledge-first',
    removes: 'a message is acknowledged after its outcome is durable (I9)',
    breaks: ['I9 ack last'],
    consumer: (ports) => ({
      ...ports,
      subscribers: ports.subscribers.map(acknowledgedFirst),
    }),
  },
  {
    name: 'given-up-for-good',
    removes: 'what the broker has given up is acknowledged there after its event is settled or parked (I9)',
    breaks: ['I9 ack last'],
    consumer: ({ brokerDeadLetters, ...ports }) =>
      brokerDeadLetters === undefined ? ports : { ...ports, brokerDeadLetters: acknowledgedFirst(brokerDeadLetters) },
  },
  {
    name: 'assumed-commit',
    removes: 'a commit without an answer counts as failed',
    breaks: ['I9 ack last'],
    consumer: (ports) => ({
      ...ports,
      store: {
        async transact(work) {
          let last: { result: Awaited<ReturnType<typeof work>> } | null = null;
          try {
            return await ports.store.transact(async (transaction) => {
              last = { result: await work(transaction) };
              return last.result;
            });
          } catch (error) {
            const done = last as { result: Awaited<ReturnType<typeof work>> } | null;
            if (done !== null && isNightporterError(error, 'NP_STORE_UNAVAILABLE')) return done.result;
            throw error;
          }
        },
      },
    }),
  },
  {
    name: 'no-baton',
    removes: 'the parked version behind a settled one gets its turn: at once, or by the scan for what was forgotten',
    breaks: ['history: stuck'],
    consumer: (ports) => {
      const { parked } = ports;
      const withoutBaton = withSaves(ports, (changes) => without(changes, 'make-due'));
      return {
        ...withoutBaton,
        parked: {
          claimDue: (request) => parked.claimDue(request),
          giveBack: (claimed) => parked.giveBack(claimed),
          behind: (places, limit) => parked.behind(places, limit),
          wake: () => Promise.resolve(0),
        },
      };
    },
  },
  {
    name: 'never-blocked',
    removes: 'parking the next version blocks its position',
    breaks: ['blocked means parked'],
    consumer: (ports) =>
      withSaves(ports, (changes) =>
        changes.map((change) =>
          change.kind === 'position' ? { ...change, position: { ...change.position, state: 'open' } } : change,
        ),
      ),
  },
  {
    name: 'uncounted-claims',
    removes: 'a claim counts as an attempt before the handler runs, so that attempts are bounded (I11)',
    breaks: ['history: stuck'],
    consumer: (ports) => ({
      ...ports,
      parked: {
        claimDue: async (request) =>
          (await ports.parked.claimDue(request)).map((claimed) => ({ ...claimed, attempts: 1 })),
        giveBack: (claimed) => ports.parked.giveBack(claimed),
        behind: (places, limit) => ports.parked.behind(places, limit),
        wake: (request) => ports.parked.wake(request),
      },
    }),
  },
  {
    name: 'corrupt-squatters',
    removes: 'what is not the event that was written leaves its place to the one that is (I13, I14)',
    breaks: ['I9 ack last'],
    consumer: (ports) =>
      withLoads(ports, (state) => ({
        ...state,
        parked: new Map(
          [...state.parked].map(([key, row]) => {
            const event = { ...row.event, digest: digestOf(row.event.envelope) };
            return [key, { ...row, event }];
          }),
        ),
      })),
  },
  {
    name: 'dropped-failures',
    removes: 'an event whose handler failed is parked, not forgotten (I14)',
    breaks: ['I9 ack last'],
    consumer: (ports) => withSaves(ports, (changes) => without(changes, 'park')),
  },
];

function acknowledgedFirst(subscriber: Subscriber): Subscriber {
  return {
    ...subscriber,
    async receive(request) {
      const deliveries = await subscriber.receive(request);
      await subscriber.acknowledge(deliveries);
      return deliveries;
    },
  };
}

function withSaves(ports: Ports, edit: (changes: readonly GroupChange[]) => readonly GroupChange[]): Ports {
  return withTransactions(ports, (transaction) => ({
    session: transaction.session,
    load: (events) => transaction.load(events),
    save: (changes) => transaction.save(edit(changes)),
  }));
}

function withLoads(ports: Ports, edit: (state: GroupState, events: readonly EventPlace[]) => GroupState): Ports {
  return withTransactions(ports, (transaction) => ({
    session: transaction.session,
    load: async (events) => edit(await transaction.load(events), events),
    save: (changes) => transaction.save(changes),
  }));
}

function withTransactions(ports: Ports, wrap: (transaction: Transaction) => Transaction): Ports {
  return { ...ports, store: { transact: (work) => ports.store.transact((transaction) => work(wrap(transaction))) } };
}

function parksOnly(changes: readonly GroupChange[]): boolean {
  return !changes.some((change) => change.kind === 'settle' || change.kind === 'unpark');
}

function without(changes: readonly GroupChange[], kind: GroupChange['kind']): readonly GroupChange[] {
  return changes.filter((change) => change.kind !== kind);
}

/** As if the lowest version that was asked for were always the next one. */
function rightBefore(events: readonly EventPlace[]): ReadonlyMap<AggregateKey, Position> {
  const positions = new Map<AggregateKey, Position>();
  for (const { aggregate, envelope } of events) {
    const version = Math.min(
      envelope.aggregateVersion - 1,
      positions.get(aggregate)?.version ?? Number.MAX_SAFE_INTEGER,
    );
    positions.set(aggregate, { version, startVersion: 0, state: 'open' });
  }
  return positions;
}
