import { hostname } from 'node:os';
import { destination as fileDestination, pino, stdTimeFunctions, type DestinationStream, type Logger } from 'pino';
import { prettyFactory } from 'pino-pretty';

export type { Logger } from 'pino';

export const LOG_LEVELS = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

/** Fields that are hidden wherever they stand, up to three levels deep: a second line of defence behind {@link LoggerOptions.secrets}. */
const HIDDEN_FIELDS = ['password', 'secret', 'token', 'authorization', 'cookie', 'accessKey', 'secretKey', 'uri'];

export interface LoggerOptions {
  /** The service, in every line as `service`. */
  readonly name: string;
  readonly level: LogLevel;
  /** Texts that are struck out of every line, wherever they stand. */
  readonly secrets?: readonly string[];
  /** One readable line per entry instead of JSON. Default: when standard output is a terminal. */
  readonly pretty?: boolean;
  /** Default: standard output, written synchronously, so that the last words of a crash are not lost. */
  readonly destination?: DestinationStream;
}

/** JSON lines with RFC 3339 times, level names and no secret. */
export function createLogger(options: LoggerOptions): Logger {
  const secrets = (options.secrets ?? []).map((secret) => JSON.stringify(secret).slice(1, -1));
  const output = options.destination ?? fileDestination({ dest: 1, sync: true });
  const pretty = options.pretty ?? (options.destination === undefined && process.stdout.isTTY);
  return pino(
    {
      base: { service: options.name, pid: process.pid, hostname: hostname() },
      level: options.level,
      timestamp: stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      redact: { paths: HIDDEN_FIELDS.flatMap(pathsOf), censor: '(hidden)' },
      hooks: { streamWrite: (line) => strike(line, secrets) },
    },
    pretty ? readable(output) : output,
  );
}

/** In this thread and synchronous: a line is written before the next statement runs, so a crash loses none. */
function readable(output: DestinationStream): DestinationStream {
  const format = prettyFactory({ ignore: 'service,pid,hostname', messageFormat: '({service}) {msg}' });
  return {
    write: (line) => {
      output.write(format(line));
    },
  };
}

function pathsOf(field: string): readonly string[] {
  return [field, `*.${field}`, `*.*.${field}`];
}

function strike(line: string, secrets: readonly string[]): string {
  return secrets.reduce((struck, secret) => struck.replaceAll(secret, '(hidden)'), line);
}
