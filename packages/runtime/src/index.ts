export { brokerConnection, type BrokerConnection } from './broker-connection.js';
export { systemClock, systemRandom } from './clock.js';
export {
  archiveSetting,
  commonSettings,
  mongodbSettings,
  rocketmqSettings,
  type CommonSettings,
} from './common-settings.js';
export { describeConfig, loadConfig, secretsOf, type Environment } from './config.js';
export {
  createHealthServer,
  readinessAnswer,
  readinessOf,
  type HealthServer,
  type Readiness,
  type ReadinessCheck,
} from './health.js';
export { configurationSection, helpText, type ServiceText } from './help.js';
export { createLogger, type Logger, type LoggerOptions, type LogLevel } from './logger.js';
export { METRIC_LABELS, type MetricLabel } from './metric-labels.js';
export {
  PROCESS_METRICS,
  createMetrics,
  metricsSection,
  type Exposition,
  type MetricDefinition,
  type Metrics,
  type Recorder,
  type MetricTable,
} from './metrics.js';
export { type ProcessHost, type StopSignal } from './process-host.js';
export { runService, type RunningService, type ServiceContext, type ServiceDefinition } from './service.js';
export {
  brokerEndpoints,
  choice,
  flag,
  integer,
  list,
  mongodbUri,
  optionalArchiveLocation,
  optionalList,
  optionalText,
  setting,
  text,
  type ConfigOf,
  type Secrecy,
  type Setting,
  type SettingTable,
  type ValueKind,
} from './settings.js';
export { messagingAttributes, eventAttributes, type EventFacts } from './tracing/attributes.js';
export { startTracing, type ProcessTracing, type TracingConfig } from './tracing/start-tracing.js';
export { transactionTracer } from './tracing/transaction-tracer.js';
export {
  errorTypeOf,
  type ActiveSpan,
  type MaybeContext,
  type SpanAttributes,
  type SpanCounts,
  type SpanKind,
  type SpanStart,
  type Tracing,
} from './tracing/tracing.js';
export { untilAvailable, type UntilAvailable } from './until-available.js';
