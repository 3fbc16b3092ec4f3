import { credentials } from '@grpc/grpc-js';
import grpcService, {
  type MessagingServiceClient,
} from 'rocketmq-client-nodejs/proto/apache/rocketmq/v2/service_grpc_pb.js';
import { grpcTarget, type Address } from './grpc-target.js';

/** Plain text, the system's certificates, or only those given (PEM). */
export type Tls = boolean | { readonly rootCertificates: Uint8Array };

const CHANNEL_OPTIONS = {
  // Reconnect soon after a long outage: gRPC would wait for up to two minutes.
  'grpc.initial_reconnect_backoff_ms': 500,
  'grpc.max_reconnect_backoff_ms': 5_000,
  // Notice a connection that is dead but open. Heartbeats (10 s) lie between two pings, so no server counts them as abuse.
  'grpc.keepalive_time_ms': 15_000,
  'grpc.keepalive_timeout_ms': 5_000,
  // Retries are the engines' decision; a service configuration from the DNS must not add its own.
  'grpc.enable_retries': 0,
  'grpc.service_config_disable_resolution': 1,
  // A message of the broker's maximum, 4 MiB, and its properties must be receivable.
  'grpc.max_receive_message_length': 64 * 1024 * 1024,
  'grpc.max_send_message_length': 64 * 1024 * 1024,
};

/** A gRPC channel to a proxy. It connects with its first call. */
export function openChannel(addresses: readonly Address[], tls: Tls): MessagingServiceClient {
  const rootCertificates = typeof tls === 'object' ? Buffer.from(tls.rootCertificates) : null;
  return new grpcService.MessagingServiceClient(
    grpcTarget(addresses),
    tls === false ? credentials.createInsecure() : credentials.createSsl(rootCertificates),
    CHANNEL_OPTIONS,
  );
}
