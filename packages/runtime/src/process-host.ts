import type { DestinationStream } from 'pino';
import type { Environment } from './config.js';

export type StopSignal = 'SIGTERM' | 'SIGINT';

/** What a service needs of its process; tests put a stand-in in its place. */
export interface ProcessHost {
  readonly env: Environment;
  /** Without the program's own name. */
  readonly arguments: readonly string[];
  /** Where log lines go instead of standard output. */
  readonly log?: DestinationStream;
  print(text: string): void;
  printError(text: string): void;
  exit(code: number): void;
  onStopSignal(heard: (name: StopSignal) => void): void;
  /** Exceptions and rejections that nobody caught. */
  onUncaught(heard: (error: unknown) => void): void;
}

export function processHost(): ProcessHost {
  return {
    env: process.env,
    arguments: process.argv.slice(2),
    print: (text) => {
      process.stdout.write(text);
    },
    printError: (text) => {
      process.stderr.write(text);
    },
    exit: (code) => {
      process.exit(code);
    },
    onStopSignal: (heard) => {
      for (const name of ['SIGTERM', 'SIGINT'] as const) process.on(name, heard);
      // Only where a parent keeps a channel to this process: when that parent dies, nobody is left who could stop us.
      process.once('disconnect', () => {
        heard('SIGTERM');
      });
    },
    onUncaught: (heard) => {
      process.on('uncaughtException', heard);
      process.on('unhandledRejection', heard);
    },
  };
}
