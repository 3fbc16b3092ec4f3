import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import { NightporterError } from '@nightporter/protocol';
import type { ServerProcess } from '../owned-server.js';
import { isAlive } from '../tools/processes.js';
import { tailOfFile } from '../tools/tail.js';
import { Conversation } from './conversation.js';

const READY_LIMIT_MS = 60_000;
const STOP_LIMIT_MS = 15_000;

export interface JvmLaunch {
  java: string;
  arguments: string[];
  environment: NodeJS.ProcessEnv;
  folder: string;
  /** Standard error of the JVM, and what RocketMQ logs. */
  logFiles: [output: string, broker: string];
  /** For messages: "RocketMQ on port 20001". */
  name: string;
  onUnexpectedExit: (error: Error) => void;
}

interface Run {
  child: ChildProcess;
  conversation: Conversation;
  /** Resolves with how it ended. */
  closed: Promise<string>;
}

/** The JVM with RocketMQ in it. States: down → up (start) → down (kill, stop, or an unexpected exit). */
export class Jvm implements ServerProcess {
  readonly #launch: JvmLaunch;
  #run: Run | undefined;
  #ending = false;

  constructor(launch: JvmLaunch) {
    this.#launch = launch;
  }

  get processId(): number | undefined {
    return this.#run?.child.pid;
  }

  ask(request: { operation: string } & Record<string, unknown>): Promise<unknown> {
    if (this.#run !== undefined) return this.#run.conversation.ask(request);
    return Promise.reject(
      new NightporterError(
        'NP_EMBEDDED_CONTROL_FAILED',
        `${this.#launch.name} is down, so ${request.operation} cannot be asked of it`,
      ),
    );
  }

  /** Resolves once the proxy serves clients. Throws NP_EMBEDDED_START_FAILED with the end of the logs. */
  async start(): Promise<void> {
    const run = this.#spawn();
    this.#run = run;
    this.#ending = true; // until it is up, an exit is told by the error below
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<string>((resolve) => {
      timer = setTimeout(resolve, READY_LIMIT_MS, `was not ready within ${READY_LIMIT_MS} ms`);
    });
    const failure = await Promise.race([run.conversation.ready, run.closed.then((how) => `ended with ${how}`), late]);
    clearTimeout(timer);
    if (failure !== undefined) {
      await this.kill();
      throw new NightporterError('NP_EMBEDDED_START_FAILED', this.#describe(failure));
    }
    this.#ending = false;
  }

  async kill(): Promise<void> {
    await this.#end((run) => run.child.kill('SIGKILL'), STOP_LIMIT_MS);
  }

  async stop(): Promise<void> {
    await this.halt(STOP_LIMIT_MS);
  }

  /** Everything is flushed before the JVM halts; it is killed at the limit. Resolves with how it ended: "exit code 0". */
  async halt(limitMs: number): Promise<string> {
    return this.#end((run) => {
      run.conversation.stop();
    }, limitMs);
  }

  async #end(how: (run: Run) => void, limitMs: number): Promise<string> {
    const run = this.#run;
    if (run?.child.pid === undefined || !isAlive(run.child.pid)) return 'it was down';
    this.#ending = true;
    how(run);
    const timer = setTimeout(() => run.child.kill('SIGKILL'), limitMs);
    const end = await run.closed;
    clearTimeout(timer);
    return end;
  }

  #spawn(): Run {
    const { java, folder, environment, logFiles } = this.#launch;
    const output = openSync(logFiles[0], 'a');
    // Its own process group: Ctrl-C in a terminal must not take the broker from services that are still draining.
    const child = spawn(java, this.#launch.arguments, {
      cwd: folder,
      env: environment,
      detached: true,
      stdio: ['pipe', 'pipe', output],
    });
    closeSync(output);
    const conversation = new Conversation({ requests: child.stdin, answers: child.stdout });
    return { child, conversation, closed: this.#watchEnd(child, conversation) };
  }

  async #watchEnd(child: ChildProcess, conversation: Conversation): Promise<string> {
    const how = await once(child, 'close').then(
      ([code, signal]: (number | string | null)[]) => String(signal ?? `exit code ${code ?? 'unknown'}`),
      (error: unknown) => (error as Error).message,
    );
    conversation.end(`${this.#launch.name} ended with ${how}`);
    if (this.#run?.child === child) this.#run = undefined;
    if (!this.#ending)
      this.#launch.onUnexpectedExit(
        new NightporterError('NP_EMBEDDED_CONTROL_FAILED', this.#describe(`ended by itself (${how})`)),
      );
    return how;
  }

  #describe(what: string): string {
    const tails = this.#launch.logFiles.map((file) => `the end of ${file}:\n${tailOfFile(file)}`);
    return `${this.#launch.name} ${what}; ${tails.join('\n')}`;
  }
}
