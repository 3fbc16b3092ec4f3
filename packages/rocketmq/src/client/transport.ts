import { randomUUID } from 'node:crypto';
import { status, type CallOptions, type ClientUnaryCall, type Metadata, type ServiceError } from '@grpc/grpc-js';
import type { Endpoints, RpcClientManager } from 'rocketmq-client-nodejs';
import type { MessagingServiceClient } from 'rocketmq-client-nodejs/proto/apache/rocketmq/v2/service_grpc_pb.js';
import pb, {
  type AckMessageRequest,
  type AckMessageResponse,
  type ChangeInvisibleDurationRequest,
  type ChangeInvisibleDurationResponse,
  type HeartbeatRequest,
  type HeartbeatResponse,
  type NotifyClientTerminationRequest,
  type NotifyClientTerminationResponse,
  type QueryRouteRequest,
  type QueryRouteResponse,
  type ReceiveMessageRequest,
  type ReceiveMessageResponse,
  type SendMessageRequest,
  type SendMessageResponse,
} from 'rocketmq-client-nodejs/proto/apache/rocketmq/v2/service_pb.js';
import { openChannel, type Tls } from './channel.js';
import { makeReadable } from './received-message.js';
import { TelemetryStream, type RawTelemetryStream } from './telemetry-stream.js';
import { within } from './time-limit.js';

export interface TransportOptions {
  readonly tls: Tls;
  /** Where everything goes instead of where routes lead. */
  readonly pinned: Endpoints | null;
  /** Headers of a request: who asks, signed. */
  readonly metadata: () => Metadata;
  readonly log: (level: 'debug' | 'warn', message: string) => void;
}

/** What the client's producer and simple consumer use of its own connection manager. */
type UsedByClient = Pick<
  RpcClientManager,
  | 'queryRoute'
  | 'heartbeat'
  | 'sendMessage'
  | 'receiveMessage'
  | 'ackMessage'
  | 'changeInvisibleDuration'
  | 'notifyClientTermination'
  | 'telemetry'
  | 'close'
>;

/** A proxy may hold a receive longer than asked: its own minimum is 5 s as delivered. */
const POLL_SLACK_MS = 7_000;
/** Saying goodbye is a courtesy; a proxy that does not answer must not hold an exit. */
const GOODBYE_MS = 500;
/** As the client does. */
const RENEW_AFTER_MS = 1_000;
/** Codes with which a proxy refuses the settings of a client for good, a missing group among them. */
const REFUSALS = new Set<number>([
  status.INVALID_ARGUMENT,
  status.PERMISSION_DENIED,
  status.UNAUTHENTICATED,
  status.UNIMPLEMENTED,
]);

class TransportClosedError extends Error {
  constructor() {
    super('The connection to RocketMQ has been closed.');
    this.name = 'TransportClosedError';
  }
}

/**
 * Replaces the connection manager of one client. It keeps one channel per proxy (the client's own opens another with every route
 * refresh), can cancel every call in flight, so that nothing holds an exit, opens nothing after `close`, and reconnects within
 * seconds. Calls may be made until `close`; afterwards they reject with TransportClosedError.
 */
export class Transport implements UsedByClient {
  readonly #options: TransportOptions;
  readonly #channels = new Map<string, MessagingServiceClient>();
  readonly #calls = new Set<{ cancel(): void }>();
  readonly #streams = new Set<TelemetryStream>();
  readonly #ended: Promise<never>;
  #end: (reason: Error) => void = () => undefined;
  #closed = false;
  /** Ids of receives whose result never came; at most one for each receive that was ever in flight at once. */
  readonly #lostAttempts: string[] = [];

  constructor(options: TransportOptions) {
    this.#options = options;
    this.#ended = new Promise<never>((_resolve, reject) => {
      this.#end = reject;
    });
    // Whoever waits for the client's start looks at it; nobody has to.
    this.#ended.catch(() => undefined);
  }

  /** Rejects once the proxy has refused this client's settings, with its reason, or the transport has been closed. */
  get ended(): Promise<never> {
    return this.#ended;
  }

  queryRoute(endpoints: Endpoints, request: QueryRouteRequest, durationMs: number): Promise<QueryRouteResponse> {
    return this.#unary(endpoints, durationMs, (channel, metadata, options, callback) =>
      channel.queryRoute(request, metadata, options, callback),
    );
  }

  heartbeat(endpoints: Endpoints, request: HeartbeatRequest, durationMs: number): Promise<HeartbeatResponse> {
    return this.#unary(endpoints, durationMs, (channel, metadata, options, callback) =>
      channel.heartbeat(request, metadata, options, callback),
    );
  }

  sendMessage(endpoints: Endpoints, request: SendMessageRequest, durationMs: number): Promise<SendMessageResponse> {
    return this.#unary(endpoints, durationMs, (channel, metadata, options, callback) =>
      channel.sendMessage(request, metadata, options, callback),
    );
  }

  ackMessage(endpoints: Endpoints, request: AckMessageRequest, durationMs: number): Promise<AckMessageResponse> {
    return this.#unary(endpoints, durationMs, (channel, metadata, options, callback) =>
      channel.ackMessage(request, metadata, options, callback),
    );
  }

  changeInvisibleDuration(
    endpoints: Endpoints,
    request: ChangeInvisibleDurationRequest,
    durationMs: number,
  ): Promise<ChangeInvisibleDurationResponse> {
    return this.#unary(endpoints, durationMs, (channel, metadata, options, callback) =>
      channel.changeInvisibleDuration(request, metadata, options, callback),
    );
  }

  /** Resolves whatever the proxy says: the client would not close anything otherwise. */
  async notifyClientTermination(
    endpoints: Endpoints,
    request: NotifyClientTerminationRequest,
    durationMs: number,
  ): Promise<NotifyClientTerminationResponse> {
    try {
      return await this.#unary<NotifyClientTerminationResponse>(
        endpoints,
        Math.min(durationMs, GOODBYE_MS),
        (channel, metadata, options, callback) => channel.notifyClientTermination(request, metadata, options, callback),
      );
    } catch (error) {
      this.#options.log('debug', `${endpoints.facade} did not answer the goodbye: ${String(error)}`);
      return new pb.NotifyClientTerminationResponse();
    }
  }

  /**
   * Every receive carries an attempt id, which the client leaves out. Where a result was lost on the way, its queue is locked until
   * the invisibility ends, except for a receive with the same id: that gets the same messages at once.
   */
  async receiveMessage(
    endpoints: Endpoints,
    request: ReceiveMessageRequest,
    durationMs: number,
  ): Promise<ReceiveMessageResponse[]> {
    const channel = this.#channel(endpoints);
    const attemptId = this.#lostAttempts.pop() ?? randomUUID();
    request.setAttemptId(attemptId);
    const stream = channel.receiveMessage(request, this.#options.metadata(), {
      deadline: Date.now() + durationMs + POLL_SLACK_MS,
    });
    this.#calls.add(stream);
    try {
      const responses: ReceiveMessageResponse[] = [];
      for await (const response of stream) {
        const message = (response as ReceiveMessageResponse).getMessage();
        if (message !== undefined) makeReadable(message);
        responses.push(response as ReceiveMessageResponse);
      }
      return responses;
    } catch (error) {
      this.#lostAttempts.push(attemptId);
      throw error;
    } finally {
      this.#calls.delete(stream);
    }
  }

  /** It signs each renewal with fresh headers, where the client's own are as old as its session. */
  telemetry(endpoints: Endpoints): RawTelemetryStream {
    const stream = new TelemetryStream({
      open: () => (this.#closed ? null : this.#openTelemetry(endpoints)),
      renewAfterMs: RENEW_AFTER_MS,
      onFault: (error) => {
        this.#options.log('warn', `the client could not handle a command of ${endpoints.facade}: ${String(error)}`);
      },
    });
    this.#streams.add(stream);
    // The client uses on, once, write, end and removeAllListeners of it, and nothing else.
    return stream as unknown as RawTelemetryStream;
  }

  /** The proxy's first answer to one command. Rejects when there is none within the time. */
  async ask(endpoints: Endpoints, command: pb.TelemetryCommand, durationMs: number): Promise<pb.TelemetryCommand> {
    const stream = this.#openTelemetry(endpoints);
    try {
      const answer = new Promise<pb.TelemetryCommand>((resolve, reject) => {
        stream.on('data', resolve);
        stream.on('error', reject);
        stream.on('end', () => {
          reject(new Error('The proxy ended the telemetry stream without an answer.'));
        });
      });
      stream.write(command);
      return await within(answer, durationMs);
    } finally {
      stream.end();
    }
  }

  /** Cancels what is in flight and closes every channel. */
  close(): void {
    this.#closed = true;
    this.#end(new TransportClosedError());
    for (const stream of this.#streams) stream.end();
    this.#streams.clear();
    for (const call of this.#calls) call.cancel();
    this.#calls.clear();
    for (const channel of this.#channels.values()) channel.close();
    this.#channels.clear();
  }

  #openTelemetry(endpoints: Endpoints): RawTelemetryStream {
    const stream = this.#channel(endpoints).telemetry(this.#options.metadata());
    this.#calls.add(stream);
    stream.on('error', (error: ServiceError) => {
      this.#calls.delete(stream);
      this.#options.log('debug', `lost the telemetry stream to ${endpoints.facade}: ${error.message}`);
      if (REFUSALS.has(error.code)) this.#end(error);
    });
    stream.on('end', () => this.#calls.delete(stream));
    return stream;
  }

  #channel(routed: Endpoints): MessagingServiceClient {
    if (this.#closed) throw new TransportClosedError();
    const endpoints = this.#options.pinned ?? routed;
    const known = this.#channels.get(endpoints.facade);
    if (known !== undefined) return known;
    const channel = openChannel(endpoints.addressesList, this.#options.tls);
    this.#channels.set(endpoints.facade, channel);
    return channel;
  }

  async #unary<Response>(
    endpoints: Endpoints,
    durationMs: number,
    invoke: (
      channel: MessagingServiceClient,
      metadata: Metadata,
      options: Partial<CallOptions>,
      callback: (error: ServiceError | null, response: Response) => void,
    ) => ClientUnaryCall,
  ): Promise<Response> {
    const channel = this.#channel(endpoints);
    const options = { deadline: Date.now() + durationMs };
    return await new Promise<Response>((resolve, reject) => {
      const call = invoke(channel, this.#options.metadata(), options, (error, response) => {
        this.#calls.delete(call);
        if (error === null) resolve(response);
        else reject(error);
      });
      this.#calls.add(call);
    });
  }
}
