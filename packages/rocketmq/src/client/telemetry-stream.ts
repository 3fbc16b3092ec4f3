import { EventEmitter } from 'node:events';
import type { ClientDuplexStream } from '@grpc/grpc-js';
import type { TelemetryCommand } from 'rocketmq-client-nodejs/proto/apache/rocketmq/v2/service_pb.js';

export type RawTelemetryStream = ClientDuplexStream<TelemetryCommand, TelemetryCommand>;

/**
 * Stands between the client's telemetry session and the gRPC stream. The session removes its listeners before the stream has
 * ended, and gRPC then throws the stream's last error (usually CANCELLED) at the process; it also runs the client's handlers inside
 * the stream's callback, where an exception would be uncaught as well. Here an error without listener ends here, and an exception
 * of a handler is told to `onFault`.
 *
 * Without a stream it is inert: what a client gets that renews its session after the transport was closed.
 */
export class GuardedTelemetryStream extends EventEmitter {
  readonly #stream: RawTelemetryStream | null;

  constructor(stream: RawTelemetryStream | null, onFault: (error: unknown) => void) {
    super();
    this.#stream = stream;
    if (stream === null) return;
    const pass = (event: 'data' | 'error' | 'end', ...values: unknown[]): void => {
      if (this.listenerCount(event) === 0) return;
      try {
        this.emit(event, ...values);
      } catch (error) {
        onFault(error);
      }
    };
    stream.on('data', (command: TelemetryCommand) => {
      pass('data', command);
    });
    stream.on('error', (error: Error) => {
      pass('error', error);
    });
    stream.on('end', () => {
      pass('end');
    });
  }

  write(command: TelemetryCommand): boolean {
    return this.#stream?.write(command) ?? false;
  }

  end(): this {
    this.#stream?.end();
    return this;
  }
}
