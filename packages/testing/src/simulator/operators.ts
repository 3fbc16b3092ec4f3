import type { Cluster, SimulatedGroup } from './cluster.js';

/** People who look at DEAD rows and dead letters now and then, and decide a little later, on what they saw. */
export function startOperators(cluster: Cluster): void {
  const { schedule, knobs } = cluster;
  const random = cluster.random.fork();

  function again(): void {
    schedule.after(random.between(400, cluster.faults.active ? 2_500 : 800), round);
  }

  function round(): void {
    const mayResolve = cluster.faults.active || knobs.resolveAll;
    const resolvesRows = cluster.faults.active ? knobs.relayOperators : knobs.resolveAll;
    const resolvesLetters = cluster.faults.active ? knobs.groupOperators : knobs.resolveAll;
    if (resolvesRows) resolveRow();
    if (resolvesLetters) for (const group of cluster.groups) resolveLetter(group);
    if (mayResolve) again();
  }

  function resolveRow(): void {
    const dead = cluster.database.outbox.rows().filter((row) => row.status === 'DEAD');
    const row = dead[random.integer(dead.length)];
    if (row === undefined) return;
    for (const delayMs of decisionDelays()) {
      const skips = random.chance(0.5);
      const mends = !cluster.faults.active || random.chance(0.6);
      schedule.after(delayMs, () => {
        if (!skips && mends) cluster.plans.mendSends(row.eventId);
        const { outbox } = cluster.database;
        const done = skips ? outbox.skipDead(row.eventId) : outbox.retryDead(row.eventId);
        cluster.trace.note(`operator ${skips ? 'skips' : 'retries'} a DEAD row`, () => `${row.eventId} ${done.kind}`);
      });
    }
  }

  function resolveLetter(group: SimulatedGroup): void {
    const dead = group.memory.parked().filter((letter) => letter.state === 'dead');
    const letter = dead[random.integer(dead.length)];
    if (letter === undefined) return;
    const { aggregate, envelope } = letter.event;
    for (const delayMs of decisionDelays()) {
      const skips = random.chance(0.5);
      const mends = !cluster.faults.active || random.chance(0.6);
      schedule.after(delayMs, () => {
        if (!skips && mends) cluster.plans.mendHandler(envelope.eventId, group.name);
        const version = envelope.aggregateVersion;
        const { memory } = group;
        const done = skips ? memory.skipDead(aggregate, version) : memory.retryDead(aggregate, version);
        cluster.trace.note(
          `operator ${skips ? 'skips' : 'retries'} a dead letter of ${group.name}`,
          () => `${aggregate}#${version} ${String(done)}`,
        );
      });
    }
  }

  /** Usually one decision; sometimes two people decide at once, and one of them much later. */
  function decisionDelays(): readonly number[] {
    const soon = random.between(1, 50);
    return random.chance(0.2) ? [soon, random.between(1, 5_000)] : [soon];
  }

  again();
}
