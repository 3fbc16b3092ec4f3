import { fork, spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../..', import.meta.url));

/** Programs run as they are delivered, so they must be built; quick when nothing has changed. */
export function buildPrograms(...projects: readonly string[]): void {
  const compiler = `${root}node_modules/typescript/bin/tsc`;
  const build = spawnSync(process.execPath, [compiler, '-b', ...projects], { cwd: root, encoding: 'utf8' });
  if (build.status !== 0) throw new Error(`the programs cannot be built:\n${build.stdout}${build.stderr}`);
}

export interface Ended {
  /** The exit code, or the signal that ended it. */
  readonly exit: number | NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** A program under test; everything that it wrote so far can be read. */
export class Program {
  readonly ended: Promise<Ended>;
  readonly #child: ChildProcess;
  readonly #heard = new Set<() => void>();
  #stdout = '';
  #stderr = '';

  constructor(child: ChildProcess) {
    this.#child = child;
    child.stdout?.setEncoding('utf8').on('data', (text: string) => {
      this.#stdout += text;
      this.#tell();
    });
    child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      this.#stderr += text;
      this.#tell();
    });
    this.ended = new Promise((resolve, reject) => {
      child.once('error', reject);
      child.once('close', (code, signal) => {
        resolve({ exit: signal ?? code, stdout: this.#stdout, stderr: this.#stderr });
        this.#tell();
      });
    });
  }

  get processId(): number {
    if (this.#child.pid === undefined) throw new Error('the program did not start');
    return this.#child.pid;
  }

  get isRunning(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null;
  }

  /** Resolves with the match once the output (both streams) matches; rejects when the program ends or the time is over first. */
  async output(pattern: RegExp, limitMs: number): Promise<RegExpExecArray> {
    const until = AbortSignal.timeout(limitMs);
    for (;;) {
      const match = pattern.exec(this.#stdout) ?? pattern.exec(this.#stderr);
      if (match !== null) return match;
      if (!this.isRunning || until.aborted) {
        throw new Error(`${String(pattern)} did not come within ${limitMs} ms:\n${this.#stdout}\n${this.#stderr}`);
      }
      await this.#change(until);
    }
  }

  signal(name: NodeJS.Signals): void {
    this.#child.kill(name);
  }

  /** Ends it whatever its state; resolves once it is gone. */
  async destroy(): Promise<void> {
    if (this.isRunning) this.#child.kill('SIGKILL');
    await this.ended;
  }

  #tell(): void {
    for (const heard of this.#heard) heard();
  }

  #change(until: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const done = (): void => {
        this.#heard.delete(done);
        until.removeEventListener('abort', done);
        resolve();
      };
      this.#heard.add(done);
      until.addEventListener('abort', done);
    });
  }
}

/** Runs `node scripts/dist/<name>.js`. */
export function runScript(name: string, args: readonly string[]): Program {
  return new Program(
    spawn(process.execPath, [`${root}scripts/dist/${name}.js`, ...args], { stdio: ['ignore', 'pipe', 'pipe'] }),
  );
}

export const builtFile = (path: string): string => `${root}${path}`;

export type ServiceName =
  | 'orders-api'
  | 'relay'
  | 'inventory-worker'
  | 'orders-worker'
  | 'points-worker'
  | 'shipping-worker'
  | 'notification-worker'
  | 'warehouse-worker'
  | 'console';

/** Runs a service on a port of its own choice. */
export function runService(name: ServiceName, settings: Record<string, string>, args: readonly string[] = []): Program {
  const child = fork(`${root}services/${name}/dist/main.js`, args, {
    env: { PATH: process.env['PATH'], PORT: '0', ...settings },
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    execArgv: [],
  });
  return new Program(child);
}

/** The address that a service has written into its log. */
export async function urlOf(service: Program): Promise<string> {
  const [, port] = await service.output(/(?:"port":|"address":"http:\/\/127\.0\.0\.1:)(\d{2,})/, 60_000);
  return `http://127.0.0.1:${port}`;
}

/** Asks until `/readyz` answers 200; rejects at once when the service ends before. */
export async function untilReady(service: Program): Promise<string> {
  const url = await urlOf(service);
  const isReady = async (): Promise<boolean> =>
    !service.isRunning || (await fetch(`${url}/readyz`, { signal: AbortSignal.timeout(5_000) })).ok;
  await until(`${url}/readyz is ready`, isReady);
  if (!service.isRunning) throw new Error(`${url} ended before it was ready: ${(await service.ended).stdout}`);
  return url;
}

const ASK_EVERY_MS = 50;
const ASK_SELDOM_MS = 10_000;
/** The waits are so many times as long as an answer takes: who counts documents to see how far others are must not be what they wait for. */
const WAITS_PER_ANSWER = 5;

/** Asks until the answer is true; an answer that rejects counts as not yet. */
export async function until(what: string, ask: () => Promise<boolean>, limitMs = 60_000): Promise<void> {
  const end = performance.now() + limitMs;
  let last: unknown = 'never true';
  for (;;) {
    const asked = performance.now();
    try {
      if (await ask()) return;
    } catch (error) {
      last = error;
    }
    const leftMs = end - performance.now();
    if (leftMs <= 0) throw new Error(`${what}: not within ${limitMs} ms (${String(last)})`);
    const waitMs = Math.min(Math.max(WAITS_PER_ANSWER * (performance.now() - asked), ASK_EVERY_MS), ASK_SELDOM_MS);
    await new Promise((resolve) => setTimeout(resolve, Math.min(waitMs, leftMs)));
  }
}
