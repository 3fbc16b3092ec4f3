import type { Clock } from '@nightporter/protocol';
import type { Network } from '../memory/index.js';
import type { Cluster } from './cluster.js';
import { Incarnation } from './incarnation.js';
import type { SeededRandom } from './random.js';
import { simulatedNetwork } from './simulated-network.js';

/** What an engine offers to the process that runs it. */
export interface Service {
  run(): Promise<void>;
  stop(): Promise<void>;
}

/** What one life of a process has to work with. */
export interface Life {
  /** Used by no other life. */
  readonly owner: string;
  readonly clock: Clock;
  readonly random: SeededRandom;
  readonly network: Network;
  /** Ends this life from within, as a handler may that takes the process down with it. */
  readonly crash: () => void;
}

export interface ProcessSetting {
  readonly name: string;
  readonly cluster: Cluster;
  readonly boot: (life: Life) => Service;
  /** How long a supervisor takes to start it again, at most. */
  readonly restartMsMax: number;
}

type Ending = 'none' | 'restart' | 'for good';

/** A process under a supervisor: it is started again whenever it dies, until it is stopped for good. */
export class SimulatedProcess {
  readonly name: string;
  readonly #setting: ProcessSetting;
  #lives = 0;
  #current: { incarnation: Incarnation; service: Service; ending: Ending } | null = null;

  constructor(setting: ProcessSetting) {
    this.name = setting.name;
    this.#setting = setting;
  }

  get isUp(): boolean {
    return this.#current !== null && !this.#current.incarnation.paused && this.#current.ending === 'none';
  }

  get isRunning(): boolean {
    return this.#current !== null;
  }

  start(): void {
    const { cluster, boot } = this.#setting;
    this.#lives += 1;
    const owner = `${this.name}#${this.#lives}`;
    const random = cluster.random.fork();
    const incarnation = new Incarnation(owner, cluster.schedule, random.between(0, 1e6));
    cluster.trace.note(`${owner} starts`);
    const network = simulatedNetwork(incarnation, { ...cluster, random: cluster.random.fork() });
    const life: Life = {
      owner,
      clock: incarnation.clock,
      random,
      network,
      crash: () => {
        this.crash('from within');
      },
    };
    const current = { incarnation, service: boot(life), ending: 'none' as Ending };
    this.#current = current;
    incarnation.onDeath = () => {
      this.#died(current);
    };
    void this.#supervise(current);
  }

  crash(how: string): void {
    if (this.#current === null) return;
    this.#setting.cluster.trace.note(`${this.name} crashes`, () => how);
    this.#current.incarnation.die();
  }

  pause(forMs: number): void {
    this.#setting.cluster.trace.note(`${this.name} pauses`, () => `${forMs.toFixed(0)} ms`);
    this.#current?.incarnation.pause(forMs);
  }

  /** SIGTERM: the engine drains, then the process ends and is started again, or not. */
  stop(ending: 'restart' | 'for good'): void {
    const current = this.#current;
    if (current === null) return;
    this.#setting.cluster.trace.note(`${this.name} stops`, () => ending);
    current.ending = ending;
    current.incarnation.deliver(() => {
      current.service.stop().catch((error: unknown) => {
        this.#fault(current.incarnation, `stop() rejected: ${textOf(error)}`);
      });
    });
  }

  async #supervise(current: { incarnation: Incarnation; service: Service; ending: Ending }): Promise<void> {
    try {
      await current.service.run();
    } catch (error) {
      this.#fault(current.incarnation, `run() rejected: ${textOf(error)}`);
    }
    if (!current.incarnation.alive) return;
    if (current.ending === 'none') this.#fault(current.incarnation, 'run() resolved without being stopped');
    current.incarnation.die();
  }

  #fault(incarnation: Incarnation, detail: string): void {
    if (incarnation.alive) this.#setting.cluster.report('the engine does not fall over', `${this.name}: ${detail}`);
  }

  #died(current: { incarnation: Incarnation; ending: Ending }): void {
    const { cluster, restartMsMax } = this.#setting;
    this.#current = null;
    if (current.ending === 'for good') return;
    cluster.schedule.after(cluster.random.between(50, restartMsMax), () => {
      this.start();
    });
  }
}

function textOf(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}
