/**
 * The life of a service process.
 *
 *   starting ──▶ running ──▶ draining ──▶ exit 0
 *
 * SIGTERM or SIGINT leads from starting or running to draining; a second one exits at once (128 + its number). Draining
 * that outlasts SHUTDOWN_MS exits 1 with a log line. Anything that the service cannot handle (start failed, `ended`
 * settled by itself, an exception or rejection that nobody caught) is logged and exits 1 from every mode: what matters is in the database, and a fresh
 * start is the one path that is known to work.
 */
import { isNightporterError } from '@nightporter/protocol';
import { constants } from 'node:os';
import type { CommonSettings } from './common-settings.js';
import { describeConfig, loadConfig, secretsOf } from './config.js';
import { helpText, type ServiceText } from './help.js';
import { createLogger, type Logger } from './logger.js';
import { processHost, type ProcessHost, type StopSignal } from './process-host.js';
import type { ConfigOf, SettingTable } from './settings.js';
import { spansUrlOf, startTracing } from './tracing/start-tracing.js';
import type { Tracing } from './tracing/tracing.js';

export interface RunningService {
  /** Pending while the service works. Settling without being asked to stop is fatal, whether it resolves or rejects. */
  readonly ended: Promise<void>;
  /** Finishes the work in hand and lets go of everything. Called at most once. */
  stop(): Promise<void>;
}

export interface ServiceContext<Config> {
  readonly config: Config;
  readonly logger: Logger;
  /** Null, or left out, where no traces are asked for: then nothing is done for them. */
  readonly tracing?: Tracing | null;
  /** Aborted once the process was asked to stop. */
  readonly signal: AbortSignal;
}

export interface ServiceDefinition<Table extends CommonSettings & SettingTable> extends ServiceText {
  readonly config: Table;
  start(context: ServiceContext<ConfigOf<Table>>): Promise<RunningService>;
}

/** Runs a service until it is asked to stop, and exits the process. Resolves only where `host` does not really exit. */
export async function runService<Table extends CommonSettings & SettingTable>(
  definition: ServiceDefinition<Table>,
  host: ProcessHost = processHost(),
): Promise<void> {
  const argument = host.arguments[0];
  if (argument === '--help' || argument === '-h') {
    host.print(helpText(definition, definition.config));
    host.exit(0);
    return;
  }
  const config = argument === undefined ? readConfig(definition, host) : refuseArgument(argument, host);
  if (config === null) {
    host.exit(1);
    return;
  }
  const logger = createLogger({
    name: definition.name,
    // The table has these settings by its type; the mapped type of a generic table cannot show it.
    level: (config as ConfigOf<CommonSettings>).logLevel,
    secrets: secretsOf(definition.config, host.env),
    ...(host.log === undefined ? {} : { destination: host.log }),
  });
  logger.info({ settings: describeConfig(definition.config, host.env), node: process.version }, 'starting');
  host.exit(
    await live(definition, { config, logger, host, shutdownMs: (config as ConfigOf<CommonSettings>).shutdownMs }),
  );
}

function readConfig<Table extends CommonSettings & SettingTable>(
  definition: ServiceDefinition<Table>,
  host: ProcessHost,
): ConfigOf<Table> | null {
  try {
    return loadConfig(definition.config, host.env);
  } catch (error) {
    if (!isNightporterError(error, 'NP_CONFIG_INVALID')) throw error;
    host.printError(`${definition.name}: NP_CONFIG_INVALID: ${error.message}\nRun with --help for all settings.\n`);
    return null;
  }
}

function refuseArgument(argument: string, host: ProcessHost): null {
  host.printError(
    `unknown argument ${JSON.stringify(argument)}: all settings are environment variables; --help prints them\n`,
  );
  return null;
}

interface Life<Config> {
  readonly config: Config;
  readonly logger: Logger;
  readonly host: ProcessHost;
  readonly shutdownMs: number;
}

/** What is left of the time for stopping may go to the last spans, but not all of it: a stop in order must not become one out of time. */
const FLUSH_SHARE = 0.8;
const FLUSH_MS_MAX = 2_000;

type Mode = 'starting' | 'running' | 'draining';

/** Lives through the modes and returns the exit code. */
async function live<Table extends CommonSettings & SettingTable>(
  definition: ServiceDefinition<Table>,
  { config, logger, host, shutdownMs }: Life<ConfigOf<Table>>,
): Promise<number> {
  const request = stopRequest(host, logger);
  const deadline = deadlineAfter(request.made, shutdownMs);
  const state: { mode: Mode } = { mode: 'starting' };
  const work = async (): Promise<void> => {
    const isTraced = spansUrlOf(config) !== null;
    const tracing = isTraced ? await startTracing(config, { service: definition.name, logger }) : null;
    // It may have been asked to stop while the SDK was loaded; a service is not begun only to be told so.
    if (isTraced) request.signal.throwIfAborted();
    const service = await definition.start({ config, logger, tracing, signal: request.signal });
    state.mode = 'running';
    logger.info('started');
    await Promise.race([request.made, service.ended.then(endedByItself)]);
    state.mode = 'draining';
    await service.stop();
    const leftBehind = (await tracing?.close(Math.min(FLUSH_MS_MAX, deadline.leftMs() * FLUSH_SHARE))) ?? 0;
    if (leftBehind > 0) logger.warn({ spans: leftBehind }, 'spans left behind: the collector was too slow for the end');
  };
  try {
    await Promise.race([work(), crashOf(host), deadline.passed]);
    logger.info('stopped');
    return 0;
  } catch (error) {
    if (state.mode === 'starting' && request.signal.aborted && !(error instanceof OutOfTimeError)) {
      logger.info({ err: error }, 'stopped while starting');
      return 0;
    }
    logger.fatal({ err: error, mode: state.mode }, error instanceof Error ? error.message : 'failed');
    return 1;
  } finally {
    deadline.cancel();
  }
}

function endedByItself(): never {
  throw new Error('the service ended without being asked to');
}

class OutOfTimeError extends Error {}

interface Deadline {
  readonly passed: Promise<never>;
  /** All of the time, as long as nobody has asked. */
  readonly leftMs: () => number;
  readonly cancel: () => void;
}

/** Rejects `shutdownMs` after the request, unless cancelled before. */
function deadlineAfter(requested: Promise<void>, shutdownMs: number): Deadline {
  let timer: NodeJS.Timeout | undefined;
  let endsAtMs: number | null = null;
  const passed = new Promise<never>((_resolve, reject) => {
    void requested.then(() => {
      endsAtMs = performance.now() + shutdownMs;
      timer = setTimeout(() => {
        reject(new OutOfTimeError(`the work in hand did not end within SHUTDOWN_MS (${shutdownMs} ms)`));
      }, shutdownMs);
    });
  });
  return {
    passed,
    leftMs: () => (endsAtMs === null ? shutdownMs : Math.max(0, endsAtMs - performance.now())),
    cancel: () => {
      clearTimeout(timer);
    },
  };
}

function stopRequest(host: ProcessHost, logger: Logger): { made: Promise<void>; signal: AbortSignal } {
  const controller = new AbortController();
  const made = new Promise<void>((resolve) => {
    host.onStopSignal((name) => {
      if (controller.signal.aborted) {
        logger.warn({ signal: name }, 'second signal: ending at once');
        host.exit(exitCodeOf(name));
        return;
      }
      logger.info({ signal: name }, 'stopping');
      controller.abort();
      resolve();
    });
  });
  return { made, signal: controller.signal };
}

function exitCodeOf(name: StopSignal): number {
  return 128 + constants.signals[name];
}

async function crashOf(host: ProcessHost): Promise<never> {
  return new Promise<never>((_resolve, reject) => {
    host.onUncaught((error) => {
      reject(error instanceof Error ? error : new Error(`something was thrown that is no error: ${String(error)}`));
    });
  });
}
