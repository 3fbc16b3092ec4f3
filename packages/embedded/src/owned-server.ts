import { NightporterError } from '@nightporter/protocol';
import type { DataFolder } from './data-folder.js';
import type { EmbeddedServer } from './server.js';
import type { PortReservation } from './tools/ports.js';

/** One process of ours. It can be started again after it went down. */
export interface ServerProcess {
  readonly processId: number | undefined;
  /** Resolves once the server can be used. */
  start(): Promise<void>;
  /** SIGKILL; resolves once the process is gone, and at once if it is down. */
  kill(): Promise<void>;
  /** An orderly stop that keeps everything acknowledged, and a kill if that takes too long. */
  stop(): Promise<void>;
}

interface Ownership {
  /** For messages: "the broker". */
  name: string;
  version: string;
  process: ServerProcess;
  ports: PortReservation;
  folder: DataFolder;
}

/** A server whose process, ports and data folder belong to this process. States: running, down (killed or paused), stopped for good. */
export function ownedServer({ name, version, process: server, ports, folder }: Ownership): EmbeddedServer {
  let stopped: Promise<void> | undefined;
  const stopForGood = async () => {
    resume();
    await (folder.throwaway ? server.kill() : server.stop());
    ports.release();
    folder.release();
  };
  const resume = () => {
    if (server.processId !== undefined) process.kill(server.processId, 'SIGCONT');
  };
  return {
    owned: true,
    version,
    get processId() {
      return server.processId;
    },
    kill: () => server.kill(),
    pause: () => {
      if (server.processId === undefined) throw refusal(`${name} is down, so it cannot be paused`);
      process.kill(server.processId, 'SIGSTOP');
    },
    resume,
    restart: async () => {
      if (stopped !== undefined) throw refusal(`${name} was stopped for good, so it cannot be restarted`);
      resume();
      await server.stop();
      await server.start();
    },
    stop: () => (stopped ??= stopForGood()),
  };
}

function refusal(message: string): NightporterError {
  return new NightporterError('NP_EMBEDDED_CONTROL_FAILED', message);
}
