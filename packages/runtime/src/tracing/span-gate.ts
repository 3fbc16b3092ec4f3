import type { ReadableSpan, SpanExporter, SpanProcessor } from '@opentelemetry/sdk-trace-base';
import type { SpanCounts } from './tracing.js';

type ExportDone = Parameters<SpanExporter['export']>[1];

export interface SpanGateOptions {
  /** Spans that may wait, or be under way to the collector. */
  readonly queueMax: number;
  /** Told once when spans begin to be lost. */
  readonly losing: (why: 'dropped' | 'failed', error: unknown) => void;
  /** Told once when spans arrive again; `lost` counts those since `losing`. */
  readonly recovered: (lost: number) => void;
}

/** OpenTelemetry's flag for spans that are told of. */
const SAMPLED = 1;
/** Its code for spans that the collector has taken. */
const TAKEN = 0;

/**
 * Stands before the SDK's queue and behind it, and counts. A span that finds `queueMax` others on their way is dropped here, so that
 * what a collector which is down, or slow, costs is bounded in memory, and known.
 */
export class SpanGate {
  readonly #options: SpanGateOptions;
  #held = 0;
  #exported = 0;
  #dropped = 0;
  #failed = 0;
  /** Lost when the present trouble began; null while there is none. */
  #lostBefore: number | null = null;

  constructor(options: SpanGateOptions) {
    this.#options = options;
  }

  /** Spans that are on their way. */
  get held(): number {
    return this.#held;
  }

  counts(): SpanCounts {
    return { exported: this.#exported, dropped: this.#dropped, failed: this.#failed };
  }

  /** Before the queue. */
  processor(queue: SpanProcessor): SpanProcessor {
    return {
      onStart: (span, context) => {
        queue.onStart(span, context);
      },
      onEnd: (span) => {
        if ((span.spanContext().traceFlags & SAMPLED) === 0) return;
        if (this.#held >= this.#options.queueMax) {
          this.#dropped += 1;
          this.#trouble(1, 'dropped', null);
          return;
        }
        this.#held += 1;
        queue.onEnd(span);
      },
      forceFlush: () => queue.forceFlush(),
      shutdown: () => queue.shutdown(),
    };
  }

  /** Behind the queue. */
  exporter(exporter: SpanExporter): SpanExporter {
    return {
      export: (spans: ReadableSpan[], done: ExportDone) => {
        exporter.export(spans, (result) => {
          this.#held -= spans.length;
          const { code }: { code: number } = result;
          if (code === TAKEN) this.#taken(spans.length);
          else {
            this.#failed += spans.length;
            this.#trouble(spans.length, 'failed', result.error);
          }
          done(result);
        });
      },
      shutdown: () => exporter.shutdown(),
      forceFlush: async () => exporter.forceFlush?.(),
    };
  }

  #taken(spans: number): void {
    this.#exported += spans;
    if (this.#lostBefore === null) return;
    const lost = this.#dropped + this.#failed - this.#lostBefore;
    this.#lostBefore = null;
    this.#options.recovered(lost);
  }

  #trouble(spans: number, why: 'dropped' | 'failed', error: unknown): void {
    if (this.#lostBefore !== null) return;
    this.#lostBefore = this.#dropped + this.#failed - spans;
    this.#options.losing(why, error);
  }
}
