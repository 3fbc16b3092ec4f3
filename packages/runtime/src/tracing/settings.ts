import { decimal, flag, choice, integer, keyValues, optionalText, optionalUrl, setting } from '../settings.js';

/** As OpenTelemetry names them. `parentbased_…` follows the decision that came with the trace. */
export const SAMPLERS = [
  'always_on',
  'always_off',
  'traceidratio',
  'parentbased_always_on',
  'parentbased_always_off',
  'parentbased_traceidratio',
] as const;
export type SamplerName = (typeof SAMPLERS)[number];

/** Every service has these: OpenTelemetry's own names, so that what a platform sets for all its services works here too. */
export function tracingSettings() {
  return {
    otlpEndpoint: setting({
      name: 'OTEL_EXPORTER_OTLP_ENDPOINT',
      kind: optionalUrl(),
      default: '',
      description:
        'Where an OpenTelemetry collector takes OTLP over HTTP; spans go to its path `/v1/traces`, as JSON. Without it there are no traces.',
      secret: 'credentials',
    }),
    otlpTracesEndpoint: setting({
      name: 'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT',
      kind: optionalUrl(),
      default: '',
      description: 'The whole address for spans, where it is not the one that OTEL_EXPORTER_OTLP_ENDPOINT leads to.',
      secret: 'credentials',
    }),
    otlpHeaders: setting({
      name: 'OTEL_EXPORTER_OTLP_HEADERS',
      kind: keyValues({ pairsMax: 32 }),
      default: '',
      description: 'Headers of every request to the collector, such as its token.',
      secret: 'whole',
    }),
    otlpTimeoutMs: setting({
      name: 'OTEL_EXPORTER_OTLP_TIMEOUT',
      kind: integer({ min: 100, max: 60_000 }),
      unit: 'ms',
      default: '10000',
      description: 'How long spans are offered to the collector; then they are lost, and counted.',
    }),
    tracesSampler: setting({
      name: 'OTEL_TRACES_SAMPLER',
      kind: choice(SAMPLERS),
      default: 'parentbased_always_on',
      description: 'Which traces are told of. An event carries the decision to every service.',
    }),
    tracesSamplerArg: setting({
      name: 'OTEL_TRACES_SAMPLER_ARG',
      kind: decimal({ min: 0, max: 1 }),
      default: '1',
      description: 'The share of the traces, for the samplers with a ratio.',
    }),
    serviceName: setting({
      name: 'OTEL_SERVICE_NAME',
      kind: optionalText({ charactersMax: 255 }),
      default: '',
      description: 'What the service is called in traces; its own name unless given.',
    }),
    resourceAttributes: setting({
      name: 'OTEL_RESOURCE_ATTRIBUTES',
      kind: keyValues({ pairsMax: 64 }),
      default: '',
      description: 'What every span says of where it comes from, such as `deployment.environment.name=production`.',
    }),
    spanQueueMax: setting({
      name: 'OTEL_BSP_MAX_QUEUE_SIZE',
      kind: integer({ min: 1, max: 100_000 }),
      unit: 'spans',
      default: '2048',
      description: 'Spans that wait for the collector; more are dropped, and counted.',
    }),
    spanDelayMs: setting({
      name: 'OTEL_BSP_SCHEDULE_DELAY',
      kind: integer({ min: 1, max: 60_000 }),
      unit: 'ms',
      default: '5000',
      description: 'How long spans are gathered before they are sent.',
    }),
    tracesDisabled: setting({
      name: 'OTEL_SDK_DISABLED',
      kind: flag(),
      default: 'false',
      description: 'Whether there are no traces whatever else is set.',
    }),
  };
}
