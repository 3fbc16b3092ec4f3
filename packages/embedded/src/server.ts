/** A server that the tests and the demo may treat badly. */
export interface EmbeddedServer {
  /** False for a server that was given through the environment: `stop` leaves it alone, the other methods throw NP_EMBEDDED_NOT_OURS. */
  readonly owned: boolean;
  readonly version: string;
  /** The process of a server of ours while it runs. */
  readonly processId: number | undefined;
  /** SIGKILL; resolves once the process is gone. Does nothing when the server is down. */
  kill(): Promise<void>;
  /** SIGSTOP: connections stay open and nothing answers, until `resume`. */
  pause(): void;
  /** SIGCONT. */
  resume(): void;
  /** Starts again on the same data and the same ports, after an orderly stop if it runs. */
  restart(): Promise<void>;
  /** Stops the server for good, and removes its data unless a data folder was given. May be called again. */
  stop(): Promise<void>;
}
