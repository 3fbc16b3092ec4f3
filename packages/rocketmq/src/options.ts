/** Access to a RocketMQ 5 cluster through its gRPC proxy. */
export interface ConnectionOptions {
  /** `host:port` of the proxy; several are joined by `;`. */
  readonly endpoints: string;
  readonly credentials?: Credentials;
  /** Default false: plain text. */
  readonly tls?: boolean;
  /** Limit of one request, 1,000 ms or more; default 3,000. A relay's lease must be longer. */
  readonly requestTimeoutMs?: number;
  /** Limit of starting one client (one per topic); default 10,000. */
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
