import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import { poll } from '../demo/poll.js';

export interface ContainerOptions {
  readonly name: string;
  /** Entry point and command; `node` is the one that runs this. */
  readonly words: readonly string[];
  readonly folder: string;
  readonly environment: Readonly<Record<string, string>>;
}

const ANSWER_MS = 5_000;
/** The start of a Node process on a machine that is busy with all the others is part of it. */
const HEALTH_MS = 60_000;

/** A process that is started as the container of a service would be: its folder, its command, its environment and nothing else. */
export class Container {
  readonly name: string;
  readonly #options: ContainerOptions;
  readonly #child: ChildProcess;
  readonly #url: string;
  #output = '';

  constructor(options: ContainerOptions) {
    this.name = options.name;
    this.#options = options;
    this.#url = `http://127.0.0.1:${options.environment['PORT'] ?? ''}`;
    const [, ...args] = options.words;
    this.#child = spawn(process.execPath, args, {
      cwd: options.folder,
      env: options.environment,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    for (const stream of [this.#child.stdout, this.#child.stderr])
      stream?.setEncoding('utf8').on('data', (text: string) => (this.#output = (this.#output + text).slice(-4_000)));
  }

  /** Resolves once the path answers 200. Rejects when the process ends before, or the time is over. */
  async answers(path: string, options: { limitMs: number; signal: AbortSignal }): Promise<void> {
    let last = 'no answer';
    const isThere = await poll(async () => {
      if (this.#child.exitCode !== null) throw new Error(`${this.name} ended by itself:\n${this.#output}`);
      const answer = await this.#ask(path);
      last = answer.text;
      return answer.ok ? true : null;
    }, options);
    if (isThere === null) throw new Error(`${this.name}: ${path} was not answered with 200: ${last}\n${this.#output}`);
  }

  /** Runs the image's health check beside the process, three times as an engine does before it believes a failure; throws what it says. */
  checkHealth(words: readonly string[], triesMax = 3): void {
    const [, ...args] = words;
    const { folder, environment } = this.#options;
    const check = spawnSync(process.execPath, args, {
      cwd: folder,
      env: environment,
      encoding: 'utf8',
      timeout: HEALTH_MS,
    });
    if (check.status === 0) return;
    if (triesMax > 1) {
      this.checkHealth(words, triesMax - 1);
      return;
    }
    const why = `exit ${String(check.status ?? check.signal)}: ${check.stdout}${check.stderr}`;
    throw new Error(`the health check of ${this.name} failed with ${why}\n${this.#output}`);
  }

  /** SIGTERM; throws unless it ends with exit code 0 in this time. */
  async stop(limitMs: number): Promise<void> {
    const ended = this.#child.exitCode === null ? once(this.#child, 'exit') : Promise.resolve([this.#child.exitCode]);
    this.#child.kill('SIGTERM');
    const timer = setTimeout(() => this.#child.kill('SIGKILL'), limitMs);
    const [code, signal] = (await ended) as [number | null, string | null | undefined];
    clearTimeout(timer);
    if (code !== 0)
      throw new Error(`${this.name} ended with ${String(signal ?? code)} after SIGTERM:\n${this.#output}`);
  }

  kill(): void {
    if (this.#child.exitCode === null) this.#child.kill('SIGKILL');
  }

  async #ask(path: string): Promise<{ ok: boolean; text: string }> {
    try {
      const response = await fetch(`${this.#url}${path}`, { signal: AbortSignal.timeout(ANSWER_MS) });
      return { ok: response.ok, text: `${response.status} ${await response.text()}` };
    } catch (error) {
      // Not listening yet: asked again until the limit, and told then.
      return { ok: false, text: String(error) };
    }
  }
}

/** A port that nobody listens on now. */
export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}
