import { trace } from '@opentelemetry/api';
import { partsOfTraceparent } from '@nightporter/protocol';
import {
  commonSettings,
  createLogger,
  loadConfig,
  startTracing,
  type ActiveSpan,
  type ProcessTracing,
} from '@nightporter/runtime';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { receiveOtlp, type OtlpReceiver } from './otlp-receiver.js';

const CALLER = { traceparent: '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01', tracestate: 'vendor=1' };
const plain = { kind: 'internal', attributes: {} } as const;

let collector: OtlpReceiver;
let log: string[];
const open: ProcessTracing[] = [];

beforeEach(async () => {
  collector = await receiveOtlp();
  log = [];
});
afterEach(async () => {
  await Promise.all(open.splice(0).map((tracing) => tracing.close(1_000)));
  await collector.close();
});

async function started(env: Record<string, string> = {}): Promise<ProcessTracing> {
  const config = loadConfig(commonSettings({ defaultPort: 0 }), {
    OTEL_EXPORTER_OTLP_ENDPOINT: collector.endpoint,
    OTEL_BSP_SCHEDULE_DELAY: '60000',
    ...env,
  });
  const logger = createLogger({ name: 'sample', level: 'info', destination: { write: (line) => log.push(line) } });
  const tracing = await startTracing(config, { service: 'sample', logger });
  if (tracing === null) throw new Error(`there is no tracing: ${log.join('')}`);
  open.push(tracing);
  return tracing;
}

const messages = () => log.map((line) => (JSON.parse(line) as { msg: string }).msg);
const LOST = 'spans are lost; the work goes on';

const idOf = (span: ActiveSpan) => partsOfTraceparent(span.context.traceparent)?.spanId;

describe('spans', () => {
  it('reach the collector with parent, kind, attributes, links and what happened in them', async () => {
    const tracing = await started({ OTEL_EXPORTER_OTLP_HEADERS: 'authorization=Bearer%20x' });
    const parent = tracing.start({ name: 'first', kind: 'server', parent: CALLER, attributes: {} });
    const other = tracing.start({ name: 'other', ...plain });
    const child = tracing.start({
      name: 'second',
      kind: 'producer',
      parent: parent.context,
      links: [other.context, { traceparent: 'nonsense' }],
      attributes: { 'messaging.system': 'rocketmq', attempt: 2, missing: undefined },
    });
    child.event('handler returned');
    child.link(other.context);
    child.fail('NP_HANDLER_FAILED');
    for (const span of [child, other, parent]) span.end();
    expect(await tracing.close(5_000)).toBe(0);
    const [second, , first] = collector.spans();
    expect(first).toMatchObject({
      service: 'sample',
      name: 'first',
      kind: 'server',
      traceId: '4bf92f3577b34da6a3ce929d0e0e4736',
      parentSpanId: '00f067aa0ba902b7',
      hasFailed: false,
    });
    expect(parent.context.tracestate).toBe('vendor=1');
    expect(second).toMatchObject({
      kind: 'producer',
      traceId: first!.traceId,
      parentSpanId: first!.spanId,
      attributes: { 'messaging.system': 'rocketmq', attempt: 2, 'error.type': 'NP_HANDLER_FAILED' },
      events: ['handler returned'],
      hasFailed: true,
    });
    expect(second!.links.map(({ spanId }) => spanId)).toEqual([idOf(other), idOf(other)]);
    expect(collector.headers()).toMatchObject({ authorization: 'Bearer x' });
    expect(tracing.counts()).toEqual({ exported: 3, dropped: 0, failed: 0 });
  });

  it.each([{}, { traceparent: 'nonsense', tracestate: 'vendor=1' }])('begin a trace below %o', async (parent) => {
    const tracing = await started();
    const span = tracing.start({ name: 'first', parent, ...plain });
    span.end();
    await tracing.close(5_000);
    expect(collector.spans()[0]).toMatchObject({ parentSpanId: null });
    expect(span.context.tracestate).toBeUndefined();
  });

  it('follow the decision that came with the trace, and pass it on', async () => {
    const tracing = await started();
    const unsampled = { traceparent: CALLER.traceparent.replace(/01$/, '00') };
    const span = tracing.start({ name: 'quiet', parent: unsampled, ...plain });
    span.end();
    await tracing.close(5_000);
    expect(span.context.traceparent).toMatch(/-00$/);
    expect(collector.spans()).toEqual([]);
  });

  it('are parents of what is traced through OpenTelemetry’s own API while they run, across awaits', async () => {
    const tracing = await started();
    const span = tracing.start({ name: 'handler', ...plain });
    await span.run(async () => {
      await Promise.resolve();
      trace.getTracer('somebody').startSpan('inner').end();
    });
    span.end();
    await tracing.close(5_000);
    expect(collector.spans().find(({ name }) => name === 'inner')).toMatchObject({ parentSpanId: idOf(span) });
  });
});

describe('a collector that does not take spans', () => {
  it('costs them, counted and told once, and nothing else', async () => {
    collector.answer('refuse');
    const tracing = await started({ OTEL_BSP_SCHEDULE_DELAY: '1' });
    for (let index = 0; index < 3; index += 1) tracing.start({ name: 'lost', ...plain }).end();
    await expect.poll(() => tracing.counts().failed).toBe(3);
    expect(messages()).toEqual([LOST]);
    collector.answer('take');
    tracing.start({ name: 'kept', ...plain }).end();
    await expect.poll(() => tracing.counts().exported).toBe(1);
    expect(messages()).toEqual([LOST, 'spans reach the collector again']);
  });

  it('fills the queue to its limit, and no further', async () => {
    collector.answer('hang');
    const tracing = await started({ OTEL_BSP_MAX_QUEUE_SIZE: '10', OTEL_BSP_SCHEDULE_DELAY: '1' });
    for (let index = 0; index < 50; index += 1) tracing.start({ name: 'many', ...plain }).end();
    expect(tracing.counts().dropped).toBe(40);
    expect(messages()).toEqual([LOST]);
  });

  it('does not hold the end up', async () => {
    collector.answer('hang');
    const tracing = await started();
    tracing.start({ name: 'last', ...plain }).end();
    const asked = performance.now();
    expect(await tracing.close(200)).toBe(1);
    expect(performance.now() - asked).toBeLessThan(4_000);
  });
});
