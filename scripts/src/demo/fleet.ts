import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { ServiceProcess } from './service-process.js';
import { PRODUCERS, TOPICS, type Databases, type Group } from './shop.js';

export interface FleetOptions {
  readonly mongodbUri: string;
  readonly rocketmqEndpoints: string;
  readonly databases: Databases;
  /** product=quantity,… */
  readonly stock: string;
  readonly logFolder: string;
  readonly workerEntry: string | null;
  /** Settings of every process. */
  readonly environment?: Readonly<Record<string, string>>;
  readonly signal: AbortSignal;
  readonly onUnexpectedExit: (error: Error) => void;
}

const ROLES = [
  'orders-api',
  'relay',
  'inventory-worker',
  'orders-worker',
  'points-worker',
  'shipping-worker',
  'notification-worker',
  'warehouse-worker',
] as const;
type Role = (typeof ROLES)[number];

/** Of these there are two, so that one can be killed: one relay works while the other stands by, and workers share the work. */
const REPLICATED: readonly Role[] = ['relay', 'inventory-worker'];
const READY_MS = 60_000;
const REPLICAS = [1, 2] as const;

/** The processes of the shop: one API, two relays, two inventory workers, and one of each other worker. */
export class Fleet {
  readonly #options: FleetOptions;
  readonly #processes = new Map<string, ServiceProcess>();

  constructor(options: FleetOptions) {
    this.#options = options;
  }

  /** Starts everything and resolves once everything is ready. */
  async start(): Promise<void> {
    for (const role of ROLES) {
      const names = REPLICATED.includes(role) ? REPLICAS.map((replica) => `${role}-${replica}`) : [role];
      for (const name of names) this.#launch(role, name);
    }
    const { signal } = this.#options;
    await Promise.all([...this.#processes.values()].map((process) => process.ready({ limitMs: READY_MS, signal })));
  }

  get apiUrl(): string {
    return this.#named('orders-api').url;
  }

  urls(): readonly { readonly name: string; readonly url: string }[] {
    return [...this.#processes.values()].map(({ name, url }) => ({ name, url }));
  }

  /** SIGKILL for the relay that works now (not the one that stands by); returns its name. */
  async killWorkingRelay(): Promise<string> {
    const relays = [...this.#processes.values()].filter(({ name }) => name.startsWith('relay'));
    const working = await Promise.all(relays.map(isWorking));
    const victim = relays[Math.max(0, working.indexOf(true))];
    if (victim === undefined) throw new Error('there is no relay to kill');
    await victim.kill();
    return victim.name;
  }

  /** SIGKILL for one of the workers; returns its name. */
  async killWorker(replica: number): Promise<string> {
    const name = `inventory-worker-${1 + (replica % REPLICAS.length)}`;
    await this.#named(name).kill();
    return name;
  }

  /** Starts a killed process again and resolves once it is ready. */
  async restart(name: string): Promise<void> {
    const role = REPLICATED.find((candidate) => name.startsWith(candidate));
    if (role === undefined) throw new Error(`${name} is none of the processes that are killed`);
    await this.#launch(role, name).ready({ limitMs: READY_MS, signal: this.#options.signal });
  }

  async stop(): Promise<void> {
    await Promise.all([...this.#processes.values()].map((process) => process.stop()));
  }

  /** For the last moment of a process that cannot wait. */
  killNow(): void {
    for (const { processId } of this.#processes.values()) {
      if (processId !== undefined) killQuietly(processId);
    }
  }

  #named(name: string): ServiceProcess {
    const found = this.#processes.get(name);
    if (found === undefined) throw new Error(`there is no process ${name}`);
    return found;
  }

  #launch(role: Role, name: string): ServiceProcess {
    this.#options.signal.throwIfAborted();
    const launched = new ServiceProcess({
      name,
      entry: this.#entryOf(role),
      settings: settingsOf(role, this.#options),
      logFile: join(this.#options.logFolder, `${name}.log`),
      onUnexpectedExit: this.#options.onUnexpectedExit,
    });
    this.#processes.set(name, launched);
    return launched;
  }

  #entryOf(role: Role): string {
    if (role === 'inventory-worker' && this.#options.workerEntry !== null) return this.#options.workerEntry;
    return fileURLToPath(new URL(`../../../services/${role}/dist/main.js`, import.meta.url));
  }
}

function settingsOf(role: Role, options: FleetOptions): Readonly<Record<string, string>> {
  const { databases } = options;
  const shared = { MONGODB_URI: options.mongodbUri, LOG_LEVEL: 'info', ...options.environment };
  const broker = { ROCKETMQ_ENDPOINTS: options.rocketmqEndpoints };
  if (role === 'orders-api') return { ...shared, MONGODB_DB: databases.orders };
  if (role === 'relay') {
    return {
      ...shared,
      ...broker,
      MONGODB_DB: databases.relay,
      OUTBOX_NAMESPACES: PRODUCERS.map((producer) => `${databases[producer]}.outbox`).join(','),
      TOPICS: Object.values(TOPICS).join(','),
      // Short, so that a killed relay is missed for seconds only; yet longer than any send.
      LEASE_MS: '7000',
      SWEEP_EVERY_MS: '10000',
    };
  }
  const group = role.slice(0, -'-worker'.length) as Group;
  return {
    ...shared,
    ...broker,
    MONGODB_DB: databases[group],
    ORDERS_DB: databases.orders,
    INVENTORY_DB: databases.inventory,
    SHIPPING_DB: databases.shipping,
    // Likewise for the batches that a killed worker had in hand.
    INVISIBLE_MS: '3000',
    RECEIVE_LOOPS: '2',
    ...(role === 'inventory-worker' ? { STOCK: options.stock } : {}),
    ...(role === 'warehouse-worker' ? { WAREHOUSE_FOLDER: join(options.logFolder, 'warehouse') } : {}),
  };
}

async function isWorking(relay: ServiceProcess): Promise<boolean> {
  try {
    const response = await fetch(`${relay.url}/status`, { signal: AbortSignal.timeout(2_000) });
    const status = (await response.json()) as { shards?: readonly { state: string }[] };
    return status.shards?.some(({ state }) => state !== 'standby') ?? false;
  } catch {
    // A relay that does not answer is no worse a victim than another.
    return false;
  }
}

function killQuietly(processId: number): void {
  try {
    process.kill(processId, 'SIGKILL');
  } catch {
    // It has ended already, which is all that is wanted.
  }
}
