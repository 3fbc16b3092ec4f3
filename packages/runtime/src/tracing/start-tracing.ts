import { hostname } from 'node:os';
import type { Logger } from '../logger.js';
import type { ConfigOf } from '../settings.js';
import type { SdkOptions } from './sdk.js';
import type { tracingSettings } from './settings.js';
import type { Tracing } from './tracing.js';

export type TracingConfig = ConfigOf<ReturnType<typeof tracingSettings>>;

/** The traces of a process. */
export interface ProcessTracing extends Tracing {
  /** Sends what waits; resolves with the number of spans that are left behind when the time is up. Never rejects. */
  close(limitMs: number): Promise<number>;
}

/** Where spans go; null where nobody wants them. */
export function spansUrlOf(config: TracingConfig): string | null {
  const { otlpEndpoint, otlpTracesEndpoint, tracesDisabled } = config;
  if (tracesDisabled) return null;
  if (otlpTracesEndpoint !== null) return otlpTracesEndpoint;
  return otlpEndpoint === null ? null : `${otlpEndpoint.replace(/\/+$/, '')}/v1/traces`;
}

/**
 * Loads the SDK where traces are asked for; null where they are not, and where it cannot be loaded: work does not depend on traces.
 * `runService` does it for its services; a process that is run in another way closes it at its end.
 */
export async function startTracing(
  config: TracingConfig,
  { service, logger }: { readonly service: string; readonly logger: Logger },
): Promise<ProcessTracing | null> {
  const url = spansUrlOf(config);
  if (url === null) return null;
  try {
    const { createSdk } = await import('./sdk.js');
    return createSdk(sdkOptions(config, { url, service, logger }));
  } catch (error) {
    logger.error({ err: error }, 'there will be no traces: OpenTelemetry could not be started');
    return null;
  }
}

function sdkOptions(
  config: TracingConfig,
  { url, service, logger }: { readonly url: string; readonly service: string; readonly logger: Logger },
): SdkOptions {
  const queueMax = config.spanQueueMax;
  return {
    url,
    headers: config.otlpHeaders,
    timeoutMs: config.otlpTimeoutMs,
    sampler: config.tracesSampler,
    ratio: config.tracesSamplerArg,
    resource: {
      'host.name': hostname(),
      'process.pid': process.pid,
      ...config.resourceAttributes,
      'service.name': config.serviceName ?? config.resourceAttributes['service.name'] ?? service,
    },
    delayMs: config.spanDelayMs,
    queueMax,
    losing: (why, error) => {
      const reason =
        why === 'dropped' ? `${queueMax} spans wait for the collector already` : 'the collector did not take them';
      logger.warn(
        { reason, ...(error === undefined || error === null ? {} : { err: error }) },
        'spans are lost; the work goes on',
      );
    },
    recovered: (lost) => {
      logger.info({ lost }, 'spans reach the collector again');
    },
  };
}
