import { EventEmitter } from 'node:events';
import type { ClientDuplexStream } from '@grpc/grpc-js';
import type { TelemetryCommand } from 'rocketmq-client-nodejs/proto/apache/rocketmq/v2/service_pb.js';

export type RawTelemetryStream = ClientDuplexStream<TelemetryCommand, TelemetryCommand>;

export interface TelemetryStreamOptions {
  /** Opens a gRPC stream, or returns null once the transport is closed. */
  readonly open: () => RawTelemetryStream | null;
  readonly renewAfterMs: number;
  /** Told of an exception of the client's handlers. */
  readonly onFault: (error: unknown) => void;
}

/**
 * The telemetry stream that a client's session sees: one that never fails. A lost gRPC stream is opened anew after a pause, with the last
 * settings, until `end`.
 *
 * Left to itself, the session renews its stream in a timer that outlives its shutdown; it removes its listeners before the stream
 * has ended, and gRPC then throws the stream's last error (usually CANCELLED) at the process; and it runs its handlers inside the stream's
 * callback, where an exception would be uncaught, too.
 */
export class TelemetryStream extends EventEmitter {
  readonly #options: TelemetryStreamOptions;
  #raw: RawTelemetryStream | null = null;
  #settings: TelemetryCommand | null = null;
  #renewal: NodeJS.Timeout | null = null;
  #ended = false;

  constructor(options: TelemetryStreamOptions) {
    super();
    this.#options = options;
    this.#attach();
  }

  write(command: TelemetryCommand): boolean {
    if (command.hasSettings()) this.#settings = command;
    return this.#raw?.write(command) ?? false;
  }

  end(): this {
    this.#ended = true;
    if (this.#renewal !== null) clearTimeout(this.#renewal);
    this.#raw?.end();
    return this;
  }

  #attach(): void {
    const raw = this.#options.open();
    this.#raw = raw;
    if (raw === null) return;
    raw.on('data', (command: TelemetryCommand) => {
      if (this.#ended) return;
      try {
        this.emit('data', command);
      } catch (error) {
        this.#options.onFault(error);
      }
    });
    const lost = (): void => {
      if (this.#raw === raw) this.#renewLater();
    };
    raw.on('error', lost);
    raw.on('end', lost);
  }

  #renewLater(): void {
    this.#raw = null;
    if (this.#ended) return;
    this.#renewal = setTimeout(() => {
      this.#attach();
      if (this.#settings !== null) this.#raw?.write(this.#settings);
    }, this.#options.renewAfterMs);
  }
}
