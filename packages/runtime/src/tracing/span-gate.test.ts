import type { ReadableSpan, SpanExporter, SpanProcessor } from '@opentelemetry/sdk-trace-base';
import { describe, expect, it } from 'vitest';
import { SpanGate } from './span-gate.js';

const span = (traceFlags = 1) => ({ spanContext: () => ({ traceFlags }) }) as ReadableSpan;

/** A gate with room for two spans, before a queue that never sends by itself. */
function gate() {
  const told: string[] = [];
  const queued: ReadableSpan[] = [];
  const answers: ((result: { code: number }) => void)[] = [];
  const idle = () => Promise.resolve();
  const queue: SpanProcessor = {
    onStart: () => undefined,
    onEnd: (ended) => queued.push(ended),
    forceFlush: idle,
    shutdown: idle,
  };
  const exporter: SpanExporter = { export: (_spans, done) => answers.push(done), shutdown: idle };
  const it = new SpanGate({
    queueMax: 2,
    losing: (why) => told.push(`losing: ${why}`),
    recovered: (lost) => told.push(`recovered: ${lost} lost`),
  });
  const before = it.processor(queue);
  const behind = it.exporter(exporter);
  return {
    it,
    told,
    queued,
    end: (ended: ReadableSpan) => {
      before.onEnd(ended);
    },
    /** The queue sends what it has, and the collector answers. */
    send: (code: 0 | 1) => {
      behind.export(queued.splice(0), () => undefined);
      answers.shift()?.({ code });
    },
  };
}

describe('the gate before and behind the queue of spans', () => {
  it('drops what finds no room, and says so once', () => {
    const { it: subject, end, queued, told } = gate();
    for (let index = 0; index < 5; index += 1) end(span());
    expect(queued).toHaveLength(2);
    expect(subject.counts()).toEqual({ exported: 0, dropped: 3, failed: 0 });
    expect(told).toEqual(['losing: dropped']);
  });

  it('has room again for what the collector has taken, and says what was lost', () => {
    const { it: subject, end, send, told } = gate();
    for (let index = 0; index < 3; index += 1) end(span());
    send(0);
    end(span());
    expect(subject.counts()).toEqual({ exported: 2, dropped: 1, failed: 0 });
    expect([subject.held, told]).toEqual([1, ['losing: dropped', 'recovered: 1 lost']]);
  });

  it('counts what the collector does not take, and has room again', () => {
    const { it: subject, end, send, told } = gate();
    end(span());
    send(1);
    end(span());
    send(1);
    expect(subject.counts()).toEqual({ exported: 0, dropped: 0, failed: 2 });
    expect([subject.held, told]).toEqual([0, ['losing: failed']]);
    end(span());
    send(0);
    expect(told).toEqual(['losing: failed', 'recovered: 2 lost']);
  });

  it('holds no spans that are not sampled', () => {
    const { it: subject, end, queued } = gate();
    for (let index = 0; index < 5; index += 1) end(span(0));
    expect([queued.length, subject.held, subject.counts().dropped]).toEqual([0, 0, 0]);
  });
});
