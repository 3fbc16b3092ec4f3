import type { ConsumerPorts } from '@nightporter/consumer';
import type { ClientSession } from 'mongodb';

/** Where a worker ends itself by SIGKILL while it settles a history in batches: what no signal from outside can hit. */
export const KILL_POINTS = ['before-mark', 'after-mark', 'in-transaction', 'after-commit', 'before-watermark'] as const;
export type KillPoint = (typeof KILL_POINTS)[number];

type Ports = ConsumerPorts<ClientSession>;

/** Fewer events are what the broker has handed out meanwhile. */
const BATCH_MIN = 4;

/**
 * At `DIE_AT`, once `DIE_AFTER` batches are settled. The right to walk outlives a member by `SWEEP_CLAIM_MS` at most, so that nobody waits long for
 * one that was killed; shorter than a walk renews it, so that two may walk at once.
 */
export function killPoints(environment: Readonly<Record<string, string | undefined>>): (ports: Ports) => Ports {
  const point = environment['DIE_AT'];
  const after = Number(environment['DIE_AFTER'] ?? '0');
  const claimMs = Number(environment['SWEEP_CLAIM_MS'] ?? '30000');
  let batches = 0;
  const dieAt = async (here: KillPoint): Promise<void> => {
    if (point !== here || batches < after) return;
    process.kill(process.pid, 'SIGKILL');
    await new Promise(() => undefined);
  };
  return ({ ledgerSweep, started, store, ...ports }) => ({
    ...ports,
    ...(started === undefined
      ? {}
      : {
          started: {
            async begin(batch) {
              if (batch.events.length >= BATCH_MIN) await dieAt('before-mark');
              const elsewhere = await started.begin(batch);
              if (batch.events.length >= BATCH_MIN) await dieAt('after-mark');
              return elsewhere;
            },
          },
        }),
    store: {
      async transact(work) {
        let settles = 0;
        const result = await store.transact((transaction) =>
          work({
            session: transaction.session,
            load: (events) => transaction.load(events),
            async save(changes) {
              await transaction.save(changes);
              settles = changes.filter(({ kind }) => kind === 'settle').length;
              if (settles >= BATCH_MIN) await dieAt('in-transaction');
            },
          }),
        );
        if (settles >= BATCH_MIN) await dieAt('after-commit');
        if (settles >= BATCH_MIN) batches += 1;
        return result;
      },
    },
    ...(ledgerSweep === undefined
      ? {}
      : {
          ledgerSweep: {
            ...ledgerSweep,
            producers: ledgerSweep.producers.map(({ ledger, registry }) => ({
              ledger,
              registry: {
                ...registry,
                claim: (request) => registry.claim({ ...request, durationMs: Math.min(claimMs, request.durationMs) }),
                async advance(request) {
                  await dieAt('before-watermark');
                  await registry.advance(request);
                },
              },
            })),
          },
        }),
  });
}
