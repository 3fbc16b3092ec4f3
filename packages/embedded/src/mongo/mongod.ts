import { appendFileSync } from 'node:fs';
import { once, type EventEmitter } from 'node:events';
import { MongoInstance } from 'mongodb-memory-server-core';
import { NightporterError } from '@nightporter/protocol';
import type { ServerProcess } from '../owned-server.js';
import { isAlive } from '../tools/processes.js';
import { tailOfFile } from '../tools/tail.js';
import { ensurePrimary } from './replica-set.js';

const LAUNCH_LIMIT_MS = 60_000;
const PRIMARY_LIMIT_MS = 30_000;

export interface MongodLaunch {
  binary: string;
  /** What the binary answers to --version. */
  version: string;
  port: number;
  dataPath: string;
  logFile: string;
  arguments: string[];
  /** Called when the process ends although nobody asked it to. */
  onUnexpectedExit: (error: Error) => void;
}

/**
 * One mongod (or what looks like one) under mongodb-memory-server, which starts it, and also a small process that ends it when
 * this process is gone. States: down → up (start) → down (kill, stop, or an unexpected exit).
 */
export class Mongod implements ServerProcess {
  readonly #launch: MongodLaunch;
  #instance: MongoInstance | undefined;
  #closed: Promise<void> = Promise.resolve();
  #ending = false;

  constructor(launch: MongodLaunch) {
    this.#launch = launch;
  }

  get processId(): number | undefined {
    return this.#instance?.mongodProcess?.pid;
  }

  /** Resolves once it takes writes. Throws NP_EMBEDDED_START_FAILED with the end of the log. */
  async start(): Promise<void> {
    const { binary, port, logFile } = this.#launch;
    const instance = this.#newInstance();
    this.#ending = true; // until it is up, an exit is told by the error below
    this.#closed = this.#watchEnd(instance);
    try {
      await instance.start();
      await ensurePrimary({ port, limitMs: PRIMARY_LIMIT_MS });
    } catch (error) {
      await instance.stop();
      throw new NightporterError(
        'NP_EMBEDDED_START_FAILED',
        `The database (${binary}) did not start on port ${port}: ${(error as Error).message}; the end of ${logFile}:\n${tailOfFile(logFile)}`,
        { cause: error },
      );
    }
    this.#ending = false;
    this.#instance = instance;
  }

  async kill(): Promise<void> {
    const processId = this.processId;
    if (processId === undefined || !isAlive(processId)) return;
    this.#ending = true;
    process.kill(processId, 'SIGKILL');
    await this.#instance?.stop();
    await this.#closed;
  }

  /** After 10 s mongodb-memory-server makes it a kill. */
  async stop(): Promise<void> {
    if (this.#instance === undefined) return;
    this.#ending = true;
    await this.#instance.stop();
    await this.#closed;
  }

  /** Resolves once the process has closed its output, which is the last that is heard of it. */
  async #watchEnd(instance: MongoInstance): Promise<void> {
    const [code, signal] = (await once(instance, 'instanceClosed')) as [number | null, string | null];
    if (this.#instance === instance) this.#instance = undefined;
    if (!this.#ending) this.#launch.onUnexpectedExit(this.#unexpectedExit(signal ?? `exit code ${code ?? 'unknown'}`));
  }

  #newInstance(): MongoInstance {
    const { binary, version, port, dataPath, logFile } = this.#launch;
    const instance = new MongoInstance({
      instance: {
        port,
        dbPath: dataPath,
        ip: '127.0.0.1',
        storageEngine: 'wiredTiger',
        args: this.#launch.arguments,
        launchTimeout: LAUNCH_LIMIT_MS,
      },
      binary: { systemBinary: binary, version },
      // Its own process group: Ctrl-C in a terminal must not take the database from services that are still draining.
      spawn: { detached: true },
    });
    const output: EventEmitter = instance;
    for (const event of ['instanceSTDOUT', 'instanceSTDERR']) {
      output.on(event, (text: string) => {
        appendFileSync(logFile, `${text}\n`);
      });
    }
    return instance;
  }

  #unexpectedExit(how: string): NightporterError {
    const { port, logFile } = this.#launch;
    return new NightporterError(
      'NP_EMBEDDED_CONTROL_FAILED',
      `The database on port ${port} ended by itself (${how}); the end of ${logFile}:\n${tailOfFile(logFile)}`,
    );
  }
}
