import type { Engine } from './engine.js';
import { settlesInBatches } from './history.js';
import type { GroupProducer, SweepClaim } from './ledger-ports.js';

/** A walk, and until when it is ours. */
export interface HeldClaim {
  readonly claim: Extract<SweepClaim, { kind: 'claimed' }>;
  /** Renews it when half of its time is over; false once another member walks, or from another start. */
  readonly isOurs: () => Promise<boolean>;
}

/** Takes or renews the right to walk, and learns what the group's entry says; null where another has it, or there is no entry. */
export async function claimSweep<Session>(
  engine: Engine<Session>,
  producer: GroupProducer,
): Promise<HeldClaim | Exclude<SweepClaim['kind'], 'claimed'>> {
  const { clock } = engine.ports;
  const durationMs = engine.options.ledgerClaimMs;
  const take = (): Promise<SweepClaim> => producer.registry.claim({ owner: engine.owner, durationMs });
  let takenAtMs = clock.now();
  const claim = await take();
  await learn(engine, producer, claim);
  if (claim.kind !== 'claimed') return claim.kind;
  const renew = async (): Promise<boolean> => {
    const nowMs = clock.now();
    const again = await take();
    if (again.kind !== 'claimed' || again.floorMs !== claim.floorMs) return false;
    takenAtMs = nowMs;
    return true;
  };
  return { claim, isOurs: async () => clock.now() - takenAtMs < durationMs / 2 || renew() };
}

/** Whoever does not walk asks, until the group is live. Where nothing is settled in batches, nothing is left to the walk. */
async function learn<Session>(engine: Engine<Session>, producer: GroupProducer, claim: SweepClaim): Promise<void> {
  if (!settlesInBatches(engine)) return;
  const { catchUp, ports } = engine;
  switch (claim.kind) {
    case 'claimed':
      catchUp.learn(producer, claim, ports.clock.now());
      return;
    case 'held':
      if (!catchUp.isLive(producer)) catchUp.learn(producer, await producer.registry.standing(), ports.clock.now());
      return;
    case 'unregistered':
      catchUp.learn(producer, null, ports.clock.now());
  }
}
