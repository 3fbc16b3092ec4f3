import type { ConsumerPorts, GapFinder, GroupProducer, GroupRegistry, StartedRecords } from '@nightporter/consumer';
import type { MemorySession } from '../memory/index.js';
import type { Sabotage } from './sabotage.js';

type Ports = ConsumerPorts<MemorySession>;

/** Rules of the group's ledger sweep, and of what it settles in batches. */
export const LEDGER_SABOTAGES: readonly Sabotage[] = [
  {
    name: 'no-ledger-sweep',
    removes: 'what the broker loses is found in the ledger (I14)',
    breaks: ['history: lost'],
    consumer: (ports) => ({ ...ports, ledgerSweep: { gaps: NO_GAPS, producers: [] } }),
  },
  {
    name: 'no-walk',
    removes: 'published rows are compared with what the group has, also where no gap shows (I14)',
    breaks: ['history: lost'],
    consumer: (ports) =>
      withProducers(ports, (producer) => ({
        ...producer,
        registry: { ...producer.registry, claim: () => Promise.resolve({ kind: 'held' }) },
      })),
  },
  {
    name: 'watermark-first',
    removes: 'the watermark follows what is settled or parked (I14)',
    breaks: ['I14 complete'],
    consumer: (ports) =>
      withProducers(ports, ({ ledger, registry }) => {
        const claims = rememberFloor(registry);
        return {
          registry: claims.registry,
          ledger: {
            readVersions: (places) => ledger.readVersions(places),
            async readPublished(request) {
              const page = await ledger.readPublished(request);
              await registry.advance({ toMs: page.toMs, floorMs: claims.floorMs() });
              return page;
            },
          },
        };
      }),
  },
  {
    name: 'mark-after',
    removes: 'a batch of a history is on record before any of it runs (I10, I11)',
    breaks: ['history: stuck', 'history: lost'],
    consumer: (ports) => {
      const { started } = ports;
      if (started === undefined) return ports;
      let open: Parameters<StartedRecords['begin']>[0][] = [];
      return {
        ...ports,
        started: {
          begin: (batch) => {
            open.push(batch);
            return Promise.resolve([]);
          },
        },
        store: {
          async transact(work) {
            const result = await ports.store.transact(work);
            const due = open;
            open = [];
            for (const batch of due) await started.begin(batch);
            return result;
          },
        },
      };
    },
  },
  {
    name: 'mark-not-consulted',
    removes: 'what stands on record of a process that died runs alone, and is charged before it runs (I10, I11)',
    breaks: ['history: stuck', 'history: lost'],
    consumer: (ports) => {
      const { started } = ports;
      if (started === undefined) return ports;
      return {
        ...ports,
        started: {
          async begin(batch) {
            await started.begin(batch);
            return [];
          },
        },
      };
    },
  },
  {
    name: 'watermark-at-mark',
    removes: 'the watermark follows the commits of the batches of a page (I14)',
    breaks: ['I14 complete'],
    consumer: (ports) => {
      let page: { readonly toMs: number; readonly floorMs: number } | null = null;
      return withProducers(ports, ({ ledger, registry }) => {
        const claims = rememberFloor(registry);
        return {
          registry: claims.registry,
          ledger: {
            async readPublished(request) {
              const read = await ledger.readPublished(request);
              page = { toMs: read.toMs, floorMs: claims.floorMs() };
              return read;
            },
            async readVersions(places) {
              if (page !== null) await registry.advance(page);
              return ledger.readVersions(places);
            },
          },
        };
      });
    },
  },
];

const NO_GAPS: GapFinder = { find: () => Promise.resolve({ gaps: [], after: null }) };

function withProducers(ports: Ports, wrap: (producer: GroupProducer) => GroupProducer): Ports {
  const { ledgerSweep } = ports;
  if (ledgerSweep === undefined) return ports;
  return { ...ports, ledgerSweep: { ...ledgerSweep, producers: ledgerSweep.producers.map(wrap) } };
}

/** A registry whose floor is known as of the last claim. */
function rememberFloor(registry: GroupRegistry): { readonly registry: GroupRegistry; floorMs(): number } {
  let floorMs = 0;
  return {
    floorMs: () => floorMs,
    registry: {
      ...registry,
      async claim(request) {
        const claim = await registry.claim(request);
        if (claim.kind === 'claimed') floorMs = claim.floorMs;
        return claim;
      },
    },
  };
}
