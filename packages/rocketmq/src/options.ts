import { NightporterError } from '@nightporter/protocol';

/** Access to a RocketMQ 5 cluster through its gRPC proxy. */
export interface ConnectionOptions {
  /** `host:port` of the proxy; several are joined by `;`. */
  readonly endpoints: string;
  /**
   * Default false: brokers are reached at the addresses that the proxy's routes name. True: everything goes to `endpoints`, whatever routes
   * say, which is needed behind a port mapping or a fault proxy, and wrong for several proxies in local mode, each of which serves its own
   * broker only.
   */
  readonly alwaysUseEndpoints?: boolean;
  readonly credentials?: Credentials;
  /** Default false: plain text. With `rootCertificates` (PEM) only those are trusted. */
  readonly tls?: boolean | { readonly rootCertificates: Uint8Array };
  /** Limit of one request, 1,000 ms or more; default 3,000. A relay's lease must be longer than {@link worstSendMs}. */
  readonly requestTimeoutMs?: number;
  /** Limit of starting one client (one per topic), and of a preflight's question; default 10,000. */
  readonly startTimeoutMs?: number;
  /** Limit of `close()`; default 3,000. */
  readonly closeTimeoutMs?: number;
  /** Told what the client logs; default: nobody. Nothing is ever written to a file. */
  readonly log?: ClientLog;
}

export interface Credentials {
  readonly accessKey: string;
  readonly accessSecret: string;
  readonly securityToken?: string;
}

export type ClientLogLevel = 'debug' | 'info' | 'warn' | 'error';

/** Must not throw and must not wait. */
export type ClientLog = (level: ClientLogLevel, message: string) => void;

/** Where an operator would run `mqadmin`; only used to write the command that mends a failed preflight. */
export interface AdminOptions {
  /** `host:port` of the name server; default `$NAMESRV_ADDR`, which the shell fills in. */
  readonly nameServer?: string;
  /** Default `DefaultCluster`. */
  readonly cluster?: string;
}

export interface Limits {
  readonly requestTimeoutMs: number;
  readonly startTimeoutMs: number;
  readonly closeTimeoutMs: number;
}

const DEFAULT_LIMITS: Limits = { requestTimeoutMs: 3_000, startTimeoutMs: 10_000, closeTimeoutMs: 3_000 };
/** The client refuses a shorter one. */
const REQUEST_TIMEOUT_MIN_MS = 1_000;

/** The limits of a connection, with the defaults. @throws NP_CONFIG_INVALID */
export function limitsOf(options: ConnectionOptions): Limits {
  const limits = {
    requestTimeoutMs: options.requestTimeoutMs ?? DEFAULT_LIMITS.requestTimeoutMs,
    startTimeoutMs: options.startTimeoutMs ?? DEFAULT_LIMITS.startTimeoutMs,
    closeTimeoutMs: options.closeTimeoutMs ?? DEFAULT_LIMITS.closeTimeoutMs,
  };
  assertDuration('requestTimeoutMs', limits.requestTimeoutMs, REQUEST_TIMEOUT_MIN_MS);
  assertDuration('startTimeoutMs', limits.startTimeoutMs, 1);
  assertDuration('closeTimeoutMs', limits.closeTimeoutMs, 1);
  return limits;
}

/**
 * How long a send may be on its way at most: the wait for the topic's client to start, which lasts no longer than a request, and the
 * one request itself. What is given up after so long is sent no more.
 */
export function worstSendMs(options: Pick<ConnectionOptions, 'requestTimeoutMs'>): number {
  return 2 * (options.requestTimeoutMs ?? DEFAULT_LIMITS.requestTimeoutMs);
}

export function assertDuration(name: string, valueMs: number, minMs: number): void {
  if (Number.isInteger(valueMs) && valueMs >= minMs && valueMs <= DURATION_MAX_MS) return;
  throw new NightporterError(
    'NP_CONFIG_INVALID',
    `RocketMQ ${name} is ${valueMs}; accepted: whole milliseconds from ${minMs} to ${DURATION_MAX_MS}.`,
  );
}

const DURATION_MAX_MS = 10 * 60_000;
