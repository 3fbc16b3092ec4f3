import { fork, type ChildProcess } from 'node:child_process';
import { createWriteStream, type WriteStream } from 'node:fs';
import { createInterface } from 'node:readline';
import { poll } from './poll.js';

export interface ServiceStart {
  /** Names process and log file. */
  readonly name: string;
  /** Built JavaScript file. */
  readonly entry: string;
  readonly settings: Readonly<Record<string, string>>;
  readonly logFile: string;
  /** Told when the process ends that nobody asked to end. */
  readonly onUnexpectedExit: (error: Error) => void;
}

const STOP_MS = 8_000;
const LAST_LINES = 5;

/** One process of a service: started, killed or stopped. Its log goes to a file; the port that it chose is read from there. */
export class ServiceProcess {
  readonly name: string;
  readonly #child: ChildProcess;
  readonly #gone: Promise<void>;
  #port: number | null = null;
  #expected = false;
  #lastLines: string[] = [];

  constructor(start: ServiceStart) {
    this.name = start.name;
    // A process group of its own: Ctrl-C in the terminal is the demo's to handle. The channel ends the process with the demo.
    this.#child = fork(start.entry, [], {
      env: { PATH: process.env['PATH'], HOST: '127.0.0.1', PORT: '0', ...start.settings },
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
      detached: true,
    });
    this.#readLog(createWriteStream(start.logFile, { flags: 'a' }));
    this.#gone = new Promise((resolve) => {
      this.#child.once('error', (error) => {
        start.onUnexpectedExit(error);
        resolve();
      });
      this.#child.once('close', (code, signal) => {
        resolve();
        if (this.#expected) return;
        const how = signal ?? `exit code ${String(code)}`;
        start.onUnexpectedExit(new Error(`${start.name} ended by itself (${how}):\n${this.#lastLines.join('\n')}`));
      });
    });
  }

  get processId(): number | undefined {
    return this.#child.pid;
  }

  /** `http://127.0.0.1:port`; only once it is ready. */
  get url(): string {
    if (this.#port === null) throw new Error(`${this.name} has not said its port yet`);
    return `http://127.0.0.1:${this.#port}`;
  }

  /** Resolves once `/readyz` says so. */
  async ready(options: { limitMs: number; signal: AbortSignal }): Promise<void> {
    const ready = await poll(async () => (this.#port !== null && (await isReady(this.url)) ? true : null), options);
    if (ready === null) {
      throw new Error(`${this.name} was not ready within ${options.limitMs} ms:\n${this.#lastLines.join('\n')}`);
    }
  }

  /** SIGKILL: no chance to finish anything. */
  async kill(): Promise<void> {
    this.#expected = true;
    this.#child.kill('SIGKILL');
    await this.#gone;
  }

  /** SIGTERM, and SIGKILL for a process that does not end by itself. */
  async stop(): Promise<void> {
    this.#expected = true;
    this.#child.kill('SIGTERM');
    const timer = setTimeout(() => {
      this.#child.kill('SIGKILL');
    }, STOP_MS);
    await this.#gone;
    clearTimeout(timer);
  }

  #readLog(file: WriteStream): void {
    for (const stream of [this.#child.stdout, this.#child.stderr]) {
      if (stream === null) continue;
      createInterface({ input: stream }).on('line', (line) => {
        file.write(`${line}\n`);
        this.#lastLines = [...this.#lastLines, line].slice(-LAST_LINES);
        this.#port ??= portIn(line);
      });
    }
    this.#child.once('close', () => {
      file.end();
    });
  }
}

function portIn(line: string): number | null {
  const match = /"port":(\d+),/.exec(line) ?? /"address":"http:\/\/127\.0\.0\.1:(\d+)"/.exec(line);
  return match === null ? null : Number(match[1]);
}

async function isReady(url: string): Promise<boolean> {
  try {
    return (await fetch(`${url}/readyz`, { signal: AbortSignal.timeout(3_000) })).ok;
  } catch {
    // Not listening yet, or too busy to answer: asked again until the limit.
    return false;
  }
}
