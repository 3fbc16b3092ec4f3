import type { Fleet } from './fleet.js';

export interface Chaos {
  /** Told after each order; kills when its moment has come. */
  readonly onOrder: (done: number) => void;
  /** Resolves once everything that was killed is back. */
  readonly finished: () => Promise<void>;
  readonly kills: () => readonly string[];
}

/** Parts of the orders after which somebody is killed. */
const MOMENTS = [
  { after: 0.2, victim: 'relay' },
  { after: 0.4, victim: 'worker' },
  { after: 0.7, victim: 'relay' },
  { after: 0.8, victim: 'worker' },
] as const;

/** Kills the working relay and the workers with SIGKILL in the middle of the traffic, and starts them again. */
export function createChaos(
  fleet: Fleet,
  { orders, progress }: { orders: number; progress: (line: string) => void },
): Chaos {
  const pending = MOMENTS.map(({ after, victim }) => ({ at: Math.max(1, Math.floor(orders * after)), victim }));
  const kills: string[] = [];
  // One after another: a second relay is only killed once the first is back, as an operator would have it.
  let running = Promise.resolve();
  const kill = async (victim: 'relay' | 'worker'): Promise<void> => {
    const name = victim === 'relay' ? await fleet.killWorkingRelay() : await fleet.killWorker(kills.length);
    kills.push(name);
    progress(`killed ${name} (SIGKILL)`);
    await fleet.restart(name);
    progress(`${name} is back`);
  };
  return {
    onOrder: (done) => {
      while (pending[0] !== undefined && done >= pending[0].at) {
        const { victim } = pending[0];
        pending.shift();
        running = running.then(() => kill(victim));
        // Whoever waits for `finished` hears of it; until then it is not unhandled.
        running.catch(() => undefined);
      }
    },
    finished: () => running,
    kills: () => kills,
  };
}
